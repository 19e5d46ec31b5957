package artifact_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	"millrace/storage/table"
)

// broken are the problems of an audit.
func (w *world) broken(gatewayKeys []string) []error {
	w.t.Helper()
	findings, err := w.store.AuditOnce(w.t.Context(), "fix", gatewayKeys)
	if err != nil {
		return []error{err}
	}
	var problems []error
	for _, f := range findings {
		if f.Err != nil {
			problems = append(problems, fmt.Errorf("v%d %s: %w", f.Version, f.State, f.Err))
		}
	}
	return problems
}

func TestAWholeArtifactIsInOrder(t *testing.T) {
	w := newWorld(t)
	gateways := lives(w)
	findings, err := w.store.Audit(t.Context(), "fix", gateways)
	require.NoError(t, err)
	require.Len(t, findings, 3)
	require.Empty(t, w.broken(gateways))
	undo, err := w.store.Audit(t.Context(), "comp-fix-v1", gateways)
	require.NoError(t, err)
	require.Equal(t, findings, undo, "it is checked with what it undoes")
	require.NotEmpty(t, w.broken(nil), "what the gateway signed is not believed without its key")
	_, err = w.store.Audit(t.Context(), "none", nil)
	require.ErrorIs(t, err, storage.ErrNotFound)
}

// changed gives a value other forms, each of which is another value.
func changed(value any) []any {
	switch v := value.(type) {
	case string:
		if at, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return []any{at.Add(time.Second).Format(time.RFC3339Nano)}
		}
		if v == "" {
			return []any{"x"}
		}
		return []any{"x" + v[1:] + "y", v[:len(v)-1] + "~", ""}
	case json.Number, float64:
		return []any{json.Number("7777")}
	case bool:
		return []any{!v}
	}
	return nil
}

// leaves visits every leaf below a value with its path and a way to set it.
func leaves(path string, value any, set func(any), visit func(path string, value any, set func(any))) {
	switch v := value.(type) {
	case map[string]any:
		for name, child := range v {
			leaves(path+"."+name, child, func(n any) { v[name] = n }, visit)
		}
	case []any:
		for i, child := range v {
			leaves(fmt.Sprintf("%s[%d]", path, i), child, func(n any) { v[i] = n }, visit)
		}
	default:
		visit(path, value, set)
	}
}

// harmless are the leaves that nothing hangs on: when an item was last touched,
// how often the document was written, and the hash of a snapshot of a version
// that has gone on since, which the bucket has to tell.
var harmless = regexp.MustCompile(`\.updated_at$|^\.revision$|^\.hash$|^\.versions\[2\]\.artifact\.metadata_hash$`)

func TestEveryChangeOfADocumentIsNoticed(t *testing.T) {
	w := newWorld(t)
	gateways := lives(w)
	require.NoError(t, w.store.WriteProvenance(t.Context(), "fix"))
	body, err := artifact.Canonical(w.document())
	require.NoError(t, err)
	check := func(body []byte, rehash bool) error {
		var d storage.Document
		if err := json.Unmarshal(body, &d); err != nil {
			return err
		}
		if rehash {
			d.Hash = ""
			whole, err := artifact.Canonical(d)
			require.NoError(t, err)
			d.Hash = artifact.HashOf(whole)
		}
		return d.Check(gateways)
	}
	require.NoError(t, check(body, false))
	var document any
	require.NoError(t, json.Unmarshal(body, &document))
	tried := 0
	leaves("", document, func(any) {}, func(path string, value any, set func(any)) {
		for _, other := range changed(value) {
			set(other)
			bad, err := json.Marshal(document)
			require.NoError(t, err)
			require.Error(t, check(bad, false), "%s = %v", path, other)
			if !harmless.MatchString(path) {
				require.Error(t, check(bad, true), "%s = %v, with a new hash", path, other)
			}
			tried++
		}
		set(value)
	})
	require.Greater(t, tried, 800)
	t.Logf("%d changes", tried)
}

func TestWhatIsMissingInADocumentIsNoticed(t *testing.T) {
	w := newWorld(t)
	gateways := lives(w)
	d := w.document()
	require.NoError(t, d.Check(gateways))
	for name, versions := range map[string][]storage.Dossier{"all": nil, "one": d.Versions[1:], "one twice": append(slices.Clone(d.Versions), d.Versions[0])} {
		other := d
		other.Versions = versions
		require.Error(t, other.Check(gateways), name)
	}
	empty := storage.Document{ArtifactID: "fix"}
	body, err := artifact.Canonical(empty)
	require.NoError(t, err)
	empty.Hash = artifact.HashOf(body)
	require.ErrorContains(t, empty.Check(gateways), "no version")
	for name, cut := range map[string]func(v *storage.Dossier){
		"a transition":         func(v *storage.Dossier) { v.Transitions = v.Transitions[1:] },
		"a transition between": func(v *storage.Dossier) { v.Transitions = slices.Delete(v.Transitions, 2, 3) },
		"a decision":           func(v *storage.Dossier) { v.Approvals = v.Approvals[1:] },
		"a run":                func(v *storage.Dossier) { v.Runs = v.Runs[:1] },
		"another run":          func(v *storage.Dossier) { v.Runs = append(v.Runs, v.Runs[0]) },
		"the keys":             func(v *storage.Dossier) { v.Keys = nil },
		"an event":             func(v *storage.Dossier) { v.Records[3].Event = nil },
		"the end":              func(v *storage.Dossier) { v.Records = v.Records[:3] },
		"everything":           func(v *storage.Dossier) { v.Records = nil },
	} {
		body, err := json.Marshal(d.Versions[0])
		require.NoError(t, err)
		var v storage.Dossier
		require.NoError(t, json.Unmarshal(body, &v))
		require.NoError(t, v.Check(gateways))
		cut(&v)
		require.Error(t, v.Check(gateways), name)
	}
}

// items are all items of the artifact and of what stands for its undo, as they
// are in the table.
func (w *world) items() []table.Item {
	w.t.Helper()
	var all []table.Item
	for _, partition := range []string{"ART#fix", "ART#comp-fix-v1"} {
		for item, err := range w.store.Table.Query(w.t.Context(), table.Range{Partition: partition, From: " ", To: "~", Consistent: true}) {
			require.NoError(w.t, err)
			all = append(all, item)
		}
	}
	return all
}

func (w *world) restore(item table.Item) {
	w.t.Helper()
	_, err := w.store.Table.Client.PutItem(w.t.Context(), &dynamodb.PutItemInput{TableName: &w.store.Table.Name, Item: item})
	require.NoError(w.t, err)
}

func TestAnItemThatIsGoneIsNoticed(t *testing.T) {
	w := newWorld(t)
	gateways := lives(w)
	for _, item := range w.items() {
		_, err := w.store.Table.Client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
			TableName: &w.store.Table.Name, Key: map[string]types.AttributeValue{"PK": item["PK"], "SK": item["SK"]},
		})
		require.NoError(t, err)
		require.NotEmpty(t, w.broken(gateways), "without %v", item["SK"])
		w.restore(item)
	}
	require.Empty(t, w.broken(gateways))
}

// TestEveryChangeOfAnItemIsNoticed changes and deletes every attribute of every
// version, of HEAD and of two items of each other kind. Only when an item was last
// touched is no matter.
func TestEveryChangeOfAnItemIsNoticed(t *testing.T) {
	w := newWorld(t)
	gateways := lives(w)
	kinds := map[string]int{}
	for _, item := range w.items() {
		var fields map[string]any
		require.NoError(t, table.Decode(item, &fields))
		name := fmt.Sprint(fields["PK"], " ", fields["SK"])
		kind, _, _ := strings.Cut(fmt.Sprint(fields["SK"]), "#")
		if kinds[kind]++; kinds[kind] > 2 && kind != "V" {
			continue
		}
		for attribute := range item {
			if attribute == "PK" || attribute == "SK" || attribute == "updated_at" {
				continue // another key is another item
			}
			without := table.Item{}
			for other, value := range item {
				if other != attribute {
					without[other] = value
				}
			}
			w.restore(without)
			if !empty(item[attribute]) {
				require.NotEmpty(t, w.broken(gateways), "%s without %s", name, attribute)
			}
		}
		seen := map[string]bool{}
		leaves("", fields, func(any) {}, func(path string, value any, set func(any)) {
			attribute := strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' })[0]
			if attribute == "event" && seen[attribute] {
				return // the document's test has each leaf of the events
			}
			seen[attribute] = true
			if path == ".PK" || path == ".SK" || strings.HasSuffix(path, ".updated_at") {
				return
			}
			other := changed(value)[0]
			set(other)
			require.NoError(t, w.store.Table.Put(t.Context(), fields, nil))
			set(value)
			require.NotEmpty(t, w.broken(gateways), "%s: %s = %v", name, path, other)
		})
		w.restore(item)
	}
	require.Empty(t, w.broken(gateways))
}

// empty tells whether a value means the same as none.
func empty(value types.AttributeValue) bool {
	switch v := value.(type) {
	case *types.AttributeValueMemberN:
		return v.Value == "0"
	case *types.AttributeValueMemberBOOL:
		return !v.Value
	case *types.AttributeValueMemberS:
		return v.Value == ""
	case *types.AttributeValueMemberNULL:
		return true
	case *types.AttributeValueMemberL:
		return len(v.Value) == 0
	case *types.AttributeValueMemberM:
		return len(v.Value) == 0
	}
	return false
}

func TestEveryChangeOfAnObjectIsNoticed(t *testing.T) {
	w := newWorld(t)
	gateways := lives(w)
	out, err := w.store.Client.(*s3.Client).ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &w.store.Bucket})
	require.NoError(t, err)
	var kinds []string
	for _, o := range out.Contents {
		if o.Size == nil || *o.Size == 0 {
			continue
		}
		key := *o.Key
		kinds = append(kinds, key[strings.LastIndex(key, "/")+1:])
		stored, err := w.store.Stat(t.Context(), key, "")
		require.NoError(t, err)
		body, err := w.store.ReadAll(t.Context(), stored, 8<<20)
		require.NoError(t, err)
		put := func(content string) {
			_, err := w.store.Put(t.Context(), key, "text/plain", strings.NewReader(content))
			require.NoError(t, err)
		}
		put(strings.Repeat("x", len(body)))
		require.NotEmpty(t, w.broken(gateways), key)
		put(string(body))
		require.Empty(t, w.broken(gateways), key)
	}
	for _, kind := range []string{"run.sh", "rollback-run.sh", "spec.json", "metadata.json", "stdout.log", "stderr.log", "output.json", "fix.json"} {
		require.Contains(t, kinds, kind)
	}
	require.True(t, slices.ContainsFunc(out.Contents, func(o s3types.Object) bool { return strings.HasPrefix(*o.Key, "archive/") }))
}
