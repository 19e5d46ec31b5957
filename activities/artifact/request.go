package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
)

// Requests sends HTTP requests to allowed hosts.
type Requests struct {
	// Hosts are the names that requests may go to; none by default.
	Hosts []string
	// AllowPrivate lets requests go to private and loopback addresses, for tests
	// and development.
	AllowPrivate bool
}

// beyondLimit is how much of a response is read and dropped beyond what is kept of
// it, so that it is known to be longer; the rest is not waited for.
const beyondLimit = 1

// Run sends the request with the file as its body. The run's id is the
// idempotency key. 2xx is success; redirects are not followed. What the response
// says is kept up to the limit of output.
func (r Requests) Run(ctx context.Context, job Job) (Outcome, error) {
	args, err := job.Spec.HTTPArgs()
	if err != nil {
		return Outcome{}, err
	}
	target := args.URL
	if job.Role == artifact.Rollback && args.RollbackURL != "" {
		target = args.RollbackURL
	}
	u, err := url.Parse(target)
	if err != nil || u.User != nil || !slices.Contains(r.Hosts, strings.ToLower(u.Hostname())) {
		return Outcome{}, fmt.Errorf("requests may not go to %q: %w", hostOf(u), errForbidden)
	}
	body, err := os.Open(job.File)
	if err != nil {
		return Outcome{}, fmt.Errorf("open body: %w", err)
	}
	defer body.Close() //nolint:errcheck // only read
	request, err := http.NewRequestWithContext(ctx, args.Method, target, body)
	if err != nil {
		return Outcome{}, fmt.Errorf("make request: %w", err)
	}
	request.Header.Set("Idempotency-Key", job.RunID)
	request.Header.Set("User-Agent", "millrace")
	if args.ContentType != "" {
		request.Header.Set("Content-Type", args.ContentType)
	}
	if info, err := body.Stat(); err == nil {
		request.ContentLength = info.Size()
	}
	response, err := r.client().Do(request)
	if err != nil {
		return Outcome{Status: storage.RunFailed, ExitCode: -1, Detail: printable(withoutURL(err))}, nil
	}
	defer response.Body.Close() //nolint:errcheck // only read
	if _, err := io.Copy(job.Stdout, io.LimitReader(response.Body, job.Spec.Limits.OutputBytes+beyondLimit)); err != nil {
		return Outcome{Status: storage.RunFailed, ExitCode: response.StatusCode, Detail: printable("read response: " + withoutURL(err))}, nil
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return Outcome{Status: storage.RunFailed, ExitCode: response.StatusCode, Detail: printable(response.Status)}, nil
	}
	return Outcome{Status: storage.Succeeded, Detail: printable(response.Status)}, nil
}

// maxDetail bounds what is kept of what a server says beside its response.
const maxDetail = 200

// printable is a text that somebody else wrote, cut to what may stand in a status.
func printable(text string) string {
	text = strings.ToValidUTF8(text[:min(len(text), maxDetail)], "")
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}

func hostOf(u *url.URL) string {
	if u == nil {
		return ""
	}
	return u.Hostname()
}

// withoutURL is an error without the URL, which may hold a secret.
func withoutURL(err error) string {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Op + ": " + e.Err.Error()
	}
	return err.Error()
}

func (r Requests) client() *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: r.control}
	return &http.Client{
		Transport:     &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true, TLSHandshakeTimeout: 10 * time.Second, Proxy: nil},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// control refuses addresses after the name was resolved, so that no DNS answer
// leads a request inside.
func (r Requests) control(_, address string, _ syscall.RawConn) error {
	if r.AllowPrivate {
		return nil
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("address %s: %w", address, errForbidden)
	}
	ip := at.Addr().Unmap()
	if !ip.IsGlobalUnicast() || ip.IsPrivate() || shared.Contains(ip) {
		return fmt.Errorf("address %s is not public: %w", ip, errForbidden)
	}
	return nil
}

// shared is the address space of carriers (RFC 6598), which is not public either.
var shared = netip.MustParsePrefix("100.64.0.0/10")
