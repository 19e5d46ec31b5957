package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/danielgtaylor/huma/v2"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	"millrace/storage/objects"
)

// downloadTime bounds a download: 100 MiB at 1.5 Mbit/s.
const downloadTime = 10 * time.Minute

const (
	binaryType = "application/octet-stream"
	linesType  = "application/jsonl"
)

func (a artifactRoutes) addFiles(r *Router) {
	Handle(r, downloadOperation("get-artifact-content", artifactVersion+"/content", "Read a file of a version", binaryType), a.content)
	Handle(r, downloadOperation("get-artifact-run-output", artifactVersion+"/runs/{run_id}/{output}", "Read what a run left behind", binaryType), a.output)
	Handle(r, downloadOperation("get-artifact-provenance-document", artifactPath+"/provenance", "Read the provenance document of all versions", objects.JSON), a.document)
	lines := readOperation("export-artifact-provenance", artifactVersion+"/provenance/statements", "Export the provenance chain as in-toto statements, one a line")
	lines.Answers = map[int]*huma.Response{http.StatusOK: {
		Description: "In-toto statements (v1), each in a DSSE envelope where the gateway has a key for that.", Content: map[string]*huma.MediaType{linesType: {Schema: &huma.Schema{Type: huma.TypeString}}},
	}}
	Handle(r, lines, a.statements)
}

func downloadOperation(id, path, summary, media string) Operation {
	op := readOperation(id, path, summary)
	op.Description = "The hash is checked while the content streams: a body shorter than Content-Length means that it did not fit."
	op.Timeout, op.Answers = downloadTime, downloads(media)
	return op
}

// downloads are the answers of a download.
func downloads(media string) map[int]*huma.Response {
	text := func(description string) *huma.Param {
		return &huma.Param{Description: description, Schema: &huma.Schema{Type: huma.TypeString}}
	}
	headers := map[string]*huma.Param{
		"ETag": text("The content's hash."), "Content-Digest": text("The content's hash (RFC 9530)."), "Content-Disposition": text("attachment"),
	}
	schema := &huma.Schema{Type: huma.TypeString, Format: "binary"}
	if media == objects.JSON {
		schema = &huma.Schema{Type: huma.TypeObject}
	}
	return map[int]*huma.Response{
		http.StatusOK:          {Description: "The content.", Headers: headers, Content: map[string]*huma.MediaType{media: {Schema: schema}}},
		http.StatusNotModified: {Description: "The client has it already.", Headers: map[string]*huma.Param{"ETag": text("The content's hash.")}},
	}
}

// download is a stored file as it is sent.
type download struct {
	file  storage.StoredFile
	name  string
	media string
	// content is that of a file that was read and checked before.
	content []byte
}

func (d download) open(ctx context.Context, store storage.Store) (io.ReadCloser, error) {
	if d.content != nil {
		return io.NopCloser(bytes.NewReader(d.content)), nil
	}
	return store.Open(ctx, d.file)
}

type contentInput struct {
	ArtifactPath

	Role  string `query:"role" enum:"primary,rollback" default:"primary"`
	Match string `header:"If-None-Match" maxLength:"1024"`
}

func (a artifactRoutes) content(ctx context.Context, in *contentInput) (*huma.StreamResponse, error) {
	v, err := a.version(ctx, &in.ArtifactPath)
	if err != nil {
		return nil, err
	}
	if v.State == artifact.Archived {
		return nil, NewProblem(http.StatusNotFound, "archived", "the content is archived at "+v.ArchivePrefix+": it must be restored first")
	}
	f, found := fileOf(v, in.Role)
	if !found {
		return nil, NewProblem(http.StatusNotFound, "not-found", "the version has no such file")
	}
	return a.send(ctx, download{file: f, name: f.File().StoredName(), media: binaryType}, in.Match)
}

type outputInput struct {
	ArtifactPath

	RunID  string `path:"run_id" maxLength:"64"`
	Output string `path:"output" enum:"stdout,stderr,output"`
	Match  string `header:"If-None-Match" maxLength:"1024"`
}

var outputFiles = map[string]string{"stdout": storage.StdoutFile, "stderr": storage.StderrFile, "output": storage.OutputFile}

func (a artifactRoutes) output(ctx context.Context, in *outputInput) (*huma.StreamResponse, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	if err := artifact.CheckRunID(in.RunID); err != nil {
		return nil, artifactProblem("path", err)
	}
	run, err := a.Store.Run(ctx, in.ID, in.RunID)
	if err == nil && run.Version != in.Version {
		err = storage.ErrNotFound
	}
	if err != nil {
		return nil, artifactProblem("", err)
	}
	name := outputFiles[in.Output]
	hash, stored := run.ContentHashes[name]
	if !stored {
		return nil, NewProblem(http.StatusNotFound, "not-found", "the run left no such output: it is "+string(run.Status))
	}
	return a.sendSized(ctx, download{file: storage.StoredFile{Key: storage.RunKey(in.RunID, name), ContentHash: hash}, name: name, media: binaryType}, in.Match)
}

func (a artifactRoutes) document(ctx context.Context, in *struct {
	ID    string `path:"artifact_id" maxLength:"64" doc:"Id of the artifact."`
	Match string `header:"If-None-Match" maxLength:"1024"`
},
) (*huma.StreamResponse, error) {
	if err := artifact.CheckID(in.ID); err != nil {
		return nil, artifactProblem("path", err)
	}
	d, err := a.settledDocument(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if d.content != nil {
		return a.send(ctx, d, in.Match)
	}
	return a.sendSized(ctx, d, in.Match)
}

// settledDocument reads the provenance document that HEAD names, unless it is too
// long to be held. While versions settle, the object is replaced before HEAD names
// it: that is over in a moment.
func (a artifactRoutes) settledDocument(ctx context.Context, id string) (download, error) {
	for try := 0; ; try++ {
		head, err := a.Store.Head(ctx, id)
		if err != nil {
			return download{}, err
		}
		if head.ProvenanceHash == "" {
			return download{}, NewProblem(http.StatusNotFound, "not-found", "there is no provenance document before the outcome of a version is known")
		}
		d := download{file: storage.StoredFile{Key: storage.ProvenanceKey(id), ContentHash: head.ProvenanceHash}, name: id + ".json", media: objects.JSON}
		if d.content, err = a.Store.ReadAll(ctx, d.file, maxHeldDocument); err == nil {
			d.file.Size = int64(len(d.content))
			return d, nil
		}
		if try == documentTries || !storage.IsIntegrity(err) {
			d.content = nil
			return d, nil // what is there is compared while it is sent
		}
		select {
		case <-ctx.Done():
			return download{}, ctx.Err()
		case <-time.After(documentPause):
		}
	}
}

const (
	// documentTries is how often it is looked whether HEAD names the document.
	documentTries = 20
	documentPause = 50 * time.Millisecond
	// maxHeldDocument is how long a document may be to be checked before it is sent.
	maxHeldDocument = 4 << 20
)

// sendSized sends a file whose size is known by its object only.
func (a artifactRoutes) sendSized(ctx context.Context, d download, match string) (*huma.StreamResponse, error) {
	head, err := a.Store.Client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &a.Store.Bucket, Key: &d.file.Key})
	if err != nil {
		if body, openErr := a.Store.Open(ctx, d.file); openErr == nil {
			_ = body.Close() // it was put a moment ago: the next request finds it
		} else {
			err = openErr
		}
		return nil, artifactProblem("", err)
	}
	d.file.Size = aws.ToInt64(head.ContentLength)
	return a.send(ctx, d, match)
}

// send answers with a stored file, or with 304 to a client that has it.
func (a artifactRoutes) send(ctx context.Context, d download, match string) (*huma.StreamResponse, error) {
	etag := `"` + d.file.ContentHash + `"`
	for candidate := range strings.SplitSeq(match, ",") {
		if candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/"); candidate == etag || candidate == "*" {
			return &huma.StreamResponse{Body: func(ctx huma.Context) {
				ctx.SetHeader("ETag", etag)
				ctx.SetStatus(http.StatusNotModified)
			}}, nil
		}
	}
	body, err := d.open(ctx, a.Store)
	if err != nil {
		return nil, artifactProblem("", err)
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		defer body.Close() //nolint:errcheck // only read
		d.header(ctx, etag)
		sendBehind(ctx.BodyWriter(), body)
	}}, nil
}

func (d download) header(ctx huma.Context, etag string) {
	ctx.SetHeader("Content-Type", d.media)
	ctx.SetHeader("Content-Length", strconv.FormatInt(d.file.Size, 10))
	ctx.SetHeader("X-Content-Type-Options", "nosniff")
	ctx.SetHeader("Content-Disposition", `attachment; filename="`+d.name+`"`)
	ctx.SetHeader("ETag", etag)
	if sum, err := hex.DecodeString(strings.TrimPrefix(d.file.ContentHash, "sha256:")); err == nil {
		ctx.SetHeader("Content-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum)+":")
	}
	ctx.SetStatus(http.StatusOK)
}

// sendBehind sends content always one piece behind what was read: where the hash
// does not fit, the last piece is never sent, so that nobody takes the content
// for whole.
func sendBehind(w io.Writer, body io.Reader) {
	var held []byte
	piece := make([]byte, 64<<10)
	for {
		n, err := body.Read(piece)
		if err != nil && !errors.Is(err, io.EOF) {
			return
		}
		if n > 0 || err != nil {
			if _, writeErr := w.Write(held); writeErr != nil {
				return
			}
			held = append(held[:0], piece[:n]...)
		}
		if err != nil {
			_, _ = w.Write(held) // nobody is left to tell
			return
		}
	}
}

// statements exports the chain of a version.
func (a artifactRoutes) statements(ctx context.Context, in *ArtifactPath) (*huma.StreamResponse, error) {
	v, err := a.version(ctx, in)
	if err != nil {
		return nil, err
	}
	records, err := a.Store.Provenance(ctx, in.ID, in.Version)
	if err != nil {
		return nil, err
	}
	var files []artifact.File
	for _, f := range v.Files {
		files = append(files, f.File())
	}
	var text bytes.Buffer
	for _, record := range records {
		line, err := a.exported(record.Statement(in.ID, files))
		if err != nil {
			return nil, err
		}
		text.Write(line)
		text.WriteByte('\n')
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		ctx.SetHeader("Content-Type", linesType)
		ctx.SetStatus(http.StatusOK)
		_, _ = ctx.BodyWriter().Write(text.Bytes()) // the client is gone when this fails
	}}, nil
}

// exported is a statement as a line, in a signed envelope where there is a key.
func (a artifactRoutes) exported(s artifact.Statement) ([]byte, error) {
	statement, err := artifact.Canonical(s)
	if err != nil || a.SealingKey == nil {
		return statement, err
	}
	envelope, err := artifact.Seal(statement, artifact.StatementPayload, a.SealingKey)
	if err != nil {
		return nil, err
	}
	return artifact.Canonical(envelope)
}
