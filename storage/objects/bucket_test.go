package objects_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"millrace/storage/objects"
	"millrace/storage/storagetest"
)

func TestWhatIsPutIsReadAndKnown(t *testing.T) {
	b := storagetest.Bucket(t)
	key := "processed/factory-x/factory_state/yyyy=2026/factory-x:n1:2026-05-20T08:27:57Z.json"
	exists, err := b.Exists(t.Context(), key)
	require.NoError(t, err)
	require.False(t, exists)
	require.NoError(t, b.Put(t.Context(), key, objects.JSON, []byte(`{"a":"é"}`)))
	body, err := b.Get(t.Context(), key, 100)
	require.NoError(t, err)
	require.Equal(t, `{"a":"é"}`, string(body))
	exists, err = b.Exists(t.Context(), key)
	require.NoError(t, err)
	require.True(t, exists)
}

func TestOnlyTheFirstOfManyWritersPutsIfAbsent(t *testing.T) {
	b := storagetest.Bucket(t)
	var created atomic.Int64
	var writers sync.WaitGroup
	for n := range 50 {
		writers.Go(func() {
			ok, err := b.PutIfAbsent(t.Context(), "raw/one.json", objects.JSON, fmt.Appendf(nil, "%d", n))
			if err == nil && ok {
				created.Add(1)
			}
		})
	}
	writers.Wait()
	require.EqualValues(t, 1, created.Load())
}

func TestReadsTellWhatIsWrong(t *testing.T) {
	b := storagetest.Bucket(t)
	_, err := b.Get(t.Context(), "missing", 10)
	require.ErrorIs(t, err, objects.ErrNotFound)
	require.NoError(t, b.Put(t.Context(), "large", objects.JSON, []byte("0123456789")))
	_, err = b.Get(t.Context(), "large", 9)
	require.ErrorIs(t, err, objects.ErrTooLarge)
}

func TestAChangedObjectIsNotBelieved(t *testing.T) {
	b := storagetest.Bucket(t)
	client, ok := b.Client.(*s3.Client)
	require.True(t, ok)
	_, err := client.PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: &b.Name, Key: new("k"), Body: strings.NewReader("changed"), Metadata: map[string]string{"sha256": strings.Repeat("0", 64)},
	})
	require.NoError(t, err)
	_, err = b.Get(t.Context(), "k", 100)
	integrity, ok := errors.AsType[*objects.IntegrityError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, "k", integrity.Key)
	require.ErrorContains(t, err, strings.Repeat("0", 64))
}

func TestListsAreInOrderAndBegunAnywhere(t *testing.T) {
	b := storagetest.Bucket(t)
	for _, key := range []string{"p/a:1", "p/a:2", "p/b:1", "p/plain", "q/a:1"} {
		require.NoError(t, b.Put(t.Context(), key, objects.JSON, []byte("1")))
	}
	var keys []string
	for object, err := range b.List(t.Context(), "p/", "p/a:1") {
		require.NoError(t, err)
		require.EqualValues(t, 1, object.Size)
		require.False(t, object.LastModified.IsZero())
		keys = append(keys, object.Key)
	}
	require.Equal(t, []string{"p/a:2", "p/b:1", "p/plain"}, keys)

	prefixes, plain, err := b.Children(t.Context(), "p/", ":")
	require.NoError(t, err)
	require.Equal(t, []string{"p/a:", "p/b:"}, prefixes)
	require.Len(t, plain, 1)
	require.Equal(t, "p/plain", plain[0].Key)
}

func TestAListGoesOverManyPages(t *testing.T) {
	b := storagetest.Bucket(t)
	var writers sync.WaitGroup
	for n := range 1050 {
		writers.Go(func() { _ = b.Put(t.Context(), fmt.Sprintf("many/%04d", n), objects.JSON, []byte("1")) })
	}
	writers.Wait()
	seen := 0
	for _, err := range b.List(t.Context(), "many/", "") {
		require.NoError(t, err)
		seen++
	}
	require.Equal(t, 1050, seen)
}
