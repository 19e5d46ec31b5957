package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"millrace/domain/artifact"
)

// UploadBody gives a handler the body to read itself, piece by piece.
type UploadBody struct {
	request *http.Request
	writer  http.ResponseWriter
}

// Resolve keeps what the body is read from.
func (u *UploadBody) Resolve(ctx huma.Context) []error {
	u.request, u.writer = humachi.Unwrap(ctx)
	return nil
}

// received is a file that a client sent.
type received struct {
	role     artifact.Role
	filename string
	content  io.ReadSeeker
	hash     string
	size     int64
}

func (f received) file() artifact.File {
	return artifact.File{Role: f.role, Filename: f.filename, ContentHash: f.hash, Size: f.size}
}

// form is what a client sent: a document, which read fills in, and files. It must
// be closed.
type form struct {
	files  []received
	closed []func()
}

func (f *form) close() {
	for _, end := range f.closed {
		end()
	}
}

// described are the files without their content, in one order however they came.
func (f *form) described() []artifact.File {
	slices.SortFunc(f.files, func(a, b received) int { return cmp.Compare(a.role, b.role) })
	var files []artifact.File
	for _, file := range f.files {
		files = append(files, file.file())
	}
	return files
}

// formReader reads bodies in both of their forms.
type formReader struct {
	folder string
	idle   time.Duration
	places *uploads
}

// read reads a body. document is a pointer to the request's document; check is
// asked about it before any content is read.
func (r formReader) read(ctx context.Context, u UploadBody, document formDocument, check func() error) (*form, error) {
	// The server reads on after a refusal, and must not wait for long either.
	_ = http.NewResponseController(u.writer).SetReadDeadline(time.Now().Add(r.idle)) // a connection without deadlines has none to move
	f := &form{}
	if !isSmall(u.request) {
		done, err := r.places.begin(PrincipalFrom(ctx).Owner)
		if err != nil {
			return nil, err
		}
		f.closed = append(f.closed, done)
	}
	if err := r.fill(u, f, document, check); err != nil {
		f.close()
		return nil, bodyProblem(ctx, err)
	}
	return f, nil
}

// isSmall tells whether a body is as small as that of any other request.
func isSmall(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json" && r.ContentLength >= 0 && r.ContentLength <= maxSmallBody
}

// formDocument is the document of a request with what it says about files.
type formDocument interface{ said() []SubmittedFile }

func (r formReader) fill(u UploadBody, f *form, document formDocument, check func() error) error {
	kind, parameters, err := mime.ParseMediaType(u.request.Header.Get("Content-Type"))
	if err != nil {
		kind = ""
	}
	limit := int64(maxArtifactBody)
	if kind == "multipart/form-data" {
		limit = maxUploadBody
	}
	if u.request.ContentLength > limit {
		return errUploadTooLarge
	}
	body := newClientBody(u.writer, u.request, limit, r.idle)
	if isSmall(u.request) {
		body.until = time.Now().Add(smallBodyIdles * r.idle)
	}
	switch kind {
	case "application/json":
		return f.fromJSON(body, document, check)
	case "multipart/form-data":
		reader := multipart.NewReader(body, parameters["boundary"])
		if err := r.fromParts(f, reader, document, check); err != nil {
			return err
		}
		return body.end()
	}
	return NewProblem(http.StatusUnsupportedMediaType, "unsupported-media-type", "the body must be application/json or multipart/form-data")
}

// fromJSON reads a document that carries its content in base64.
func (f *form) fromJSON(body *clientBody, document formDocument, check func() error) error {
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	if err := body.end(); err != nil {
		return err
	}
	if err := strictly(text, document); err != nil {
		return err
	}
	if err := check(); err != nil {
		return err
	}
	for i, said := range document.said() {
		place := fmt.Sprintf("body.files[%d]", i)
		content, err := base64.StdEncoding.DecodeString(said.ContentBase64)
		if err != nil {
			return invalidInput(place+".content_base64", "must be standard base64")
		}
		file := received{role: said.Role, filename: said.Filename, content: bytes.NewReader(content), hash: artifact.HashOf(content), size: int64(len(content))}
		if err := f.add(place, file); err != nil {
			return err
		}
		if err := said.fits(place, file); err != nil {
			return err
		}
	}
	return nil
}

// fromParts reads the parts of a form: request first, then the files.
func (r formReader) fromParts(f *form, parts *multipart.Reader, document formDocument, check func() error) error {
	left := int64(maxUpload)
	for first := true; ; first = false {
		part, err := parts.NextRawPart()
		switch {
		case errors.Is(err, io.EOF) && !first: // the last boundary; a cut body is another error
			return f.complete(document.said())
		case err != nil:
			return err
		}
		if first {
			err = readDocument(part, document, check)
		} else {
			left, err = r.receive(f, part, document.said(), left)
		}
		if err != nil {
			return err
		}
	}
}

func readDocument(part *multipart.Part, document formDocument, check func() error) error {
	if part.FormName() != "request" {
		return invalidInput("body", "must begin with the part request, a JSON object")
	}
	text, err := io.ReadAll(io.LimitReader(part, maxUploadRequest+1))
	if err != nil {
		return err
	}
	if len(text) > maxUploadRequest {
		return invalidInput("body.request", fmt.Sprintf("must be at most %d bytes", maxUploadRequest))
	}
	if err := strictly(text, document); err != nil {
		return err
	}
	for i, said := range document.said() {
		if said.ContentBase64 != "" {
			return invalidInput(fmt.Sprintf("body.files[%d].content_base64", i), "must be absent where the content comes in a part of its own")
		}
	}
	return check()
}

// receive spools one file of a form and gives how much there may still be.
func (r formReader) receive(f *form, part *multipart.Part, said []SubmittedFile, left int64) (int64, error) {
	role := artifact.Role(part.FormName())
	place := "body." + string(role)
	if role != artifact.Primary && role != artifact.Rollback {
		return 0, invalidInput("body", "has a part that is none of request, primary and rollback")
	}
	// FileName of the part would cut a path off; here a path is refused.
	_, disposition, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	if err != nil {
		return 0, invalidInput(place, "must have a Content-Disposition with a filename")
	}
	file := received{role: role, filename: disposition["filename"]}
	if err := f.admit(place, file); err != nil {
		return 0, err
	}
	content, err := spool(r.folder, part, left)
	if err != nil {
		return 0, err
	}
	f.closed = append(f.closed, content.close)
	file.content, file.hash, file.size = content, content.hash, content.size
	f.files = append(f.files, file)
	for i, s := range said {
		if s.Role == role {
			return left - content.size, s.fits(fmt.Sprintf("body.files[%d]", i), file)
		}
	}
	return left - content.size, nil
}

func (f *form) add(place string, file received) error {
	if err := f.admit(place, file); err != nil {
		return err
	}
	f.files = append(f.files, file)
	return nil
}

// admit refuses a file that can't be one of the version, before it is received.
func (f *form) admit(place string, file received) error {
	if file.role != artifact.Primary && file.role != artifact.Rollback {
		return invalidInput(place+".role", "must be primary or rollback")
	}
	for _, other := range f.files {
		if other.role == file.role {
			return invalidInput(place, "is there twice")
		}
	}
	return artifactProblem(place, artifact.CheckFilename(file.filename))
}

// complete refuses a form that lacks a file that its document names.
func (f *form) complete(said []SubmittedFile) error {
	for i, s := range said {
		found := false
		for _, file := range f.files {
			found = found || file.role == s.Role
		}
		if !found {
			return invalidInput(fmt.Sprintf("body.files[%d]", i), "has no part of its role")
		}
	}
	return nil
}

// fits refuses content that is not what the document says of it.
func (s SubmittedFile) fits(place string, file received) error {
	switch {
	case s.Filename != "" && s.Filename != file.filename:
		return invalidInput(place+".filename", "is not the name of the part")
	case s.ContentHash != "" && s.ContentHash != file.hash:
		return invalidInput(place+".content_hash", "is not the hash of the content, "+file.hash)
	case s.Size != nil && *s.Size != file.size:
		return invalidInput(place+".size", fmt.Sprintf("is not the size of the content, %d", file.size))
	}
	return nil
}

var unknownField = regexp.MustCompile(`^json: unknown field "([A-Za-z0-9_.-]{1,64})"$`)

// strictly reads a JSON object and names a field that is not known.
func strictly(body []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		if unknown := unknownField.FindStringSubmatch(err.Error()); unknown != nil {
			return invalidInput("body."+unknown[1], "unexpected property")
		}
		return invalidInput("body", "can't be read: "+withoutValue(err).Error())
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return invalidInput("body", "must be one JSON object")
	}
	if !utf8.Valid(body) || !pairedSurrogates(body) {
		return invalidInput("body", "must be Unicode text, in UTF-8")
	}
	if err := uniqueNames(json.NewDecoder(bytes.NewReader(body))); err != nil {
		return invalidInput("body", err.Error())
	}
	return nil
}
