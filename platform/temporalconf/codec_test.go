package temporalconf

import (
	"crypto/rand"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"pgregory.net/rapid"

	"millrace/domain/monitoring"
)

func ring(t testing.TB, ids ...string) monitoring.KeyRing {
	t.Helper()
	var r monitoring.KeyRing
	for _, id := range ids {
		var err error
		r, err = r.With(id, rand.Reader)
		require.NoError(t, err)
	}
	return r
}

func payload(t testing.TB, value any) *commonpb.Payload {
	t.Helper()
	p, err := converter.GetDefaultDataConverter().ToPayload(value)
	require.NoError(t, err)
	return p
}

func TestCodecGivesBackWhatItEncrypted(t *testing.T) {
	codec := Codec{Ring: ring(t, "k1")}
	rapid.Check(t, func(t *rapid.T) {
		in := &commonpb.Payload{Data: rapid.SliceOf(rapid.Byte()).Draw(t, "data"), Metadata: map[string][]byte{"encoding": []byte("json/plain")}}
		encoded, err := codec.Encode([]*commonpb.Payload{in})
		require.NoError(t, err)
		decoded, err := codec.Decode(encoded)
		require.NoError(t, err)
		require.Equal(t, string(in.Data), string(decoded[0].Data))
		require.Equal(t, in.Metadata, decoded[0].Metadata)
	})
}

func TestEncryptedPayloadShowsNothing(t *testing.T) {
	codec := Codec{Ring: ring(t, "k1")}
	in := payload(t, map[string]string{"reason": "the line is stuck"})
	first, err := codec.Encode([]*commonpb.Payload{in, in})
	require.NoError(t, err)
	require.NotContains(t, first[0].String(), "stuck")
	require.NotContains(t, first[0].String(), "reason")
	require.NotEqual(t, first[0].Data, first[1].Data, "equal payloads look different")
	require.Equal(t, "k1", string(first[0].Metadata[metadataKeyID]))
}

func TestCodecReadsOldKeysAndWhatWasNeverEncrypted(t *testing.T) {
	both := ring(t, "k1", "k2")
	old := monitoring.KeyRing{Current: "k1", Keys: map[string][]byte{"k1": both.Keys["k1"]}}
	in := payload(t, "x")
	encoded, err := Codec{Ring: old}.Encode([]*commonpb.Payload{in})
	require.NoError(t, err)
	decoded, err := Codec{Ring: both}.Decode([]*commonpb.Payload{encoded[0], in})
	require.NoError(t, err)
	require.Equal(t, in.Data, decoded[0].Data)
	require.Same(t, in, decoded[1])
}

func TestCodecRefusesWhatDoesNotOpen(t *testing.T) {
	codec := Codec{Ring: ring(t, "k1")}
	sealed := func(change func(p *commonpb.Payload)) *commonpb.Payload {
		encoded, err := codec.Encode([]*commonpb.Payload{payload(t, "x")})
		require.NoError(t, err)
		change(encoded[0])
		return encoded[0]
	}
	for name, c := range map[string]struct {
		payload *commonpb.Payload
		want    error
	}{
		"unknown key": {sealed(func(p *commonpb.Payload) { p.Metadata[metadataKeyID] = []byte("k9") }), monitoring.ErrUnknownKey},
		"changed":     {sealed(func(p *commonpb.Payload) { p.Data[len(p.Data)-1] ^= 1 }), errPayloadBroken},
		"cut":         {sealed(func(p *commonpb.Payload) { p.Data = p.Data[:5] }), errPayloadBroken},
		"empty":       {sealed(func(p *commonpb.Payload) { p.Data = nil }), errPayloadBroken},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := codec.Decode([]*commonpb.Payload{c.payload})
			require.ErrorIs(t, err, c.want)
		})
	}
	_, err := Codec{Ring: ring(t, "k1")}.Decode([]*commonpb.Payload{sealed(func(*commonpb.Payload) {})})
	require.ErrorIs(t, err, errPayloadBroken, "another key of the same name")
}

func TestWithoutKeysPayloadsStayAsTheyAre(t *testing.T) {
	in := []*commonpb.Payload{payload(t, "x")}
	encoded, err := Codec{}.Encode(in)
	require.NoError(t, err)
	decoded, err := Codec{}.Decode(encoded)
	require.NoError(t, err)
	require.Equal(t, in, decoded)
}

func TestLoadCodec(t *testing.T) {
	text, err := monitoring.MarshalKeyRing(ring(t, "k1"))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "keys.json")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	for name, c := range map[string]struct {
		keys, file string
		there      bool
		err        string
	}{
		"nothing":     {},
		"text":        {keys: string(text), there: true},
		"file":        {file: file, there: true},
		"broken text": {keys: "c2VjcmV0", err: PayloadKeysVariable},
		"no file":     {file: file + "x", err: PayloadKeysFileVariable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(PayloadKeysVariable, c.keys)
			t.Setenv(PayloadKeysFileVariable, c.file)
			codec, err := LoadCodec()
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				require.NotContains(t, err.Error(), "c2VjcmV0")
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.there, codec.Enabled())
		})
	}
}

func TestClientEncryptsWhenThereAreKeys(t *testing.T) {
	text, err := monitoring.MarshalKeyRing(ring(t, "k1"))
	require.NoError(t, err)
	t.Setenv(PayloadKeysVariable, string(text))
	options, err := clientOptions(slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	require.NoError(t, err)
	p, err := options.DataConverter.ToPayload("secret")
	require.NoError(t, err)
	require.Equal(t, encodingEncrypted, string(p.Metadata[converter.MetadataEncoding]))
}
