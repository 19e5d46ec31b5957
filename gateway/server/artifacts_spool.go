package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"millrace/domain/artifact"
)

// Bounds of uploads.
const (
	// maxUpload bounds all files of a version together.
	maxUpload = artifact.MaxContent
	// maxUploadBody has room for the part request and the frames of the parts.
	maxUploadBody = maxUpload + 1<<20
	// maxUploadRequest bounds the part request.
	maxUploadRequest = 256 << 10
	// maxUploads is how many uploads are taken at once: each may fill maxUpload
	// bytes of disk.
	maxUploads = 8
	// maxUploadsOfOwner is how many of them may be of one owner.
	maxUploadsOfOwner = 4
	// maxSmallBody is what a JSON body of a told length may have and need no place;
	// it has smallBodyIdles times the time of a silence to arrive.
	maxSmallBody   = 256 << 10
	smallBodyIdles = 3
	// uploadIdle is how long a client may send nothing, uploadTime how long it may
	// send.
	uploadIdle = 10 * time.Second
	uploadTime = 10 * time.Minute
	// storeTime bounds the storing of what was received; it must be shorter than
	// the time for which a number is reserved.
	storeTime = 3 * time.Minute
)

var errUploadTooLarge = errors.New("the files are larger than allowed")

// clientBody is a request's body whose client must keep sending.
type clientBody struct {
	body       io.Reader
	controller *http.ResponseController
	idle       time.Duration
	until      time.Time
}

func newClientBody(w http.ResponseWriter, r *http.Request, limit int64, idle time.Duration) *clientBody {
	return &clientBody{
		body: http.MaxBytesReader(w, r.Body, limit), controller: http.NewResponseController(w),
		idle: idle, until: time.Now().Add(uploadTime),
	}
}

// Read reads on as long as the client sends.
func (b *clientBody) Read(p []byte) (int, error) {
	deadline := time.Now().Add(b.idle)
	if deadline.After(b.until) {
		deadline = b.until
	}
	_ = b.controller.SetReadDeadline(deadline) // a connection without deadlines has none to move
	return b.body.Read(p)
}

// end wants the body to end here, and then lifts the deadline: it would end the
// request while it is served. That of a body that is not read to its end stays,
// because the server goes on reading it.
func (b *clientBody) end() error {
	if _, err := io.Copy(io.Discard, b); err != nil {
		return err
	}
	_ = b.controller.SetReadDeadline(time.Time{}) // a connection without deadlines has none to lift
	return nil
}

// spooled is a received file, hashed, that lies on disk without a name.
//
// Content is spooled and not streamed on because its hash decides what becomes
// of it: nothing is written to the bucket before all of it has arrived, fits what
// the request says and has its number; and S3 wants a body that it can read again.
type spooled struct {
	*os.File

	hash string
	size int64
}

// spool receives a file of at most limit bytes; the error is errUploadTooLarge
// when there is more.
func spool(folder string, body io.Reader, limit int64) (*spooled, error) {
	file, err := os.CreateTemp(folder, "millrace-upload-*")
	if err != nil {
		return nil, fmt.Errorf("receive upload: %w", err)
	}
	_ = os.Remove(file.Name()) // where open files can't be removed, close does it
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(file, sum), io.LimitReader(body, limit+1))
	if err == nil && size > limit {
		err = errUploadTooLarge
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	s := &spooled{File: file, hash: artifact.HashString(sum.Sum(nil)), size: size}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *spooled) close() {
	_ = s.Close()           // only read
	_ = os.Remove(s.Name()) // mostly removed before
}

// uploads bounds how many uploads there are at once, in all and of one owner: who
// sends slowly must leave places for others.
type uploads struct {
	mutex sync.Mutex
	all   int
	of    map[string]int
}

func newUploads() *uploads { return &uploads{of: map[string]int{}} }

// begin takes a place, and refuses when there is none: waiting would hold the
// client's connection.
func (u *uploads) begin(owner string) (func(), error) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	switch {
	case u.of[owner] >= maxUploadsOfOwner:
		return nil, busyUploads("too many uploads of yours are under way: try again")
	case u.all >= maxUploads:
		return nil, busyUploads("too many uploads are under way: try again")
	}
	u.all++
	u.of[owner]++
	return func() { u.end(owner) }, nil
}

func (u *uploads) end(owner string) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.all--
	if u.of[owner]--; u.of[owner] == 0 {
		delete(u.of, owner)
	}
}

func busyUploads(detail string) *Problem {
	return NewProblem(http.StatusServiceUnavailable, "busy", detail).WithHeader("Retry-After", "5")
}

// bodyProblem is the problem of a body that could not be read.
func bodyProblem(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*Problem](err); ok {
		return err
	}
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case tooLarge || errors.Is(err, errUploadTooLarge):
		return NewProblem(http.StatusRequestEntityTooLarge, "body-too-large", fmt.Sprintf("the files of a version are at most %d bytes together", int64(maxUpload)))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return NewProblem(http.StatusRequestTimeout, "request-timeout", "the body came too slowly")
	case ctx.Err() != nil:
		return fmt.Errorf("read body: %w", err)
	}
	if _, disk := errors.AsType[*os.PathError](err); disk {
		return fmt.Errorf("receive upload: %w", err)
	}
	return invalidInput("body", "is cut short or is no multipart/form-data")
}
