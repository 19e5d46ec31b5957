package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"millrace/domain/report"
	"millrace/storage/objects"
)

// Statuses of a delivery.
const (
	DeliveryPending   = "pending"
	DeliverySent      = "sent"
	DeliveryAmbiguous = "ambiguous"
	DeliveryFailed    = "failed"
)

// Delivery is what became of the message about a day: the object delivery.json
// of the day.
type Delivery struct {
	// ID is whose delivery it is: that of the run that claimed it.
	ID     string    `json:"delivery_id"`
	Status string    `json:"status"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
	// Told is what people were told: of each target the digest of its result.
	Told map[string]string `json:"told,omitempty"`
}

// Claim is what an attempt to claim a day's delivery came to.
type Claim string

// The outcomes of a claim.
const (
	// Claimed means that the caller may send.
	Claimed Claim = "claimed"
	// Told means that people were told of these results.
	Told Claim = "told"
	// Busy means that another run is telling them now.
	Busy Claim = "busy"
)

// claimLives is how long a claim that nobody settled keeps others away: longer
// than an attempt to send may take.
const claimLives = 15 * time.Minute

// ClaimDelivery claims the message about a day for id, unless people were told of
// all the results, whose digests are given by target. Force claims it all the same,
// once per id. A claim of the same id goes on where an earlier attempt stopped.
// Who claimed it also gets what people were told before, to settle it with.
func (s Store) ClaimDelivery(ctx context.Context, date, id string, results map[string]string, now time.Time, force bool) (Claim, map[string]string, error) {
	key := s.deliveryKey(date)
	pending := Delivery{ID: id, Status: DeliveryPending, At: now.UTC()}
	claimed, err := s.putDelivery(ctx, key, pending, "")
	if err != nil || claimed {
		return Claimed, nil, err
	}
	standing, etag, err := s.delivery(ctx, key)
	if err != nil {
		return "", nil, err
	}
	switch {
	case standing.ID == id && standing.Status == DeliveryPending:
		return Claimed, standing.Told, nil
	case standing.Status == DeliveryPending && now.Sub(standing.At) < claimLives:
		return Busy, nil, nil
	case standing.ID == id && standing.sent(), !force && standing.knows(results):
		return Told, nil, nil
	}
	pending.Told = standing.Told
	claimed, err = s.putDelivery(ctx, key, pending, etag)
	if err != nil || claimed {
		return Claimed, standing.Told, err
	}
	return Busy, nil, nil
}

// sent tells whether the message arrived, as far as anybody knows.
func (d Delivery) sent() bool { return d.Status == DeliverySent || d.Status == DeliveryAmbiguous }

// knows tells whether people were told of all results.
func (d Delivery) knows(results map[string]string) bool {
	for target, digest := range results {
		if d.Told[target] != digest {
			return false
		}
	}
	return true
}

// SettleDelivery notes how the claimed delivery of a day ended.
func (s Store) SettleDelivery(ctx context.Context, date string, d Delivery) error {
	_, err := s.PutJSON(ctx, s.deliveryKey(date), d)
	return err
}

func (s Store) deliveryKey(date string) string {
	return report.DayPrefix(s.Prefix, date) + "/delivery.json"
}

func (s Store) delivery(ctx context.Context, key string) (d Delivery, etag string, err error) {
	out, err := s.Bucket.Client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.Bucket.Name, Key: &key})
	if err != nil {
		return d, "", readError(key, err)
	}
	defer out.Body.Close() //nolint:errcheck // only read
	if err := json.NewDecoder(out.Body).Decode(&d); err != nil {
		return d, "", fmt.Errorf("read object %s: %w", key, err)
	}
	return d, aws.ToString(out.ETag), nil
}

// putDelivery writes the object where it is absent, or where it still has the
// entity tag; it tells whether it did.
func (s Store) putDelivery(ctx context.Context, key string, d Delivery, etag string) (bool, error) {
	body, err := json.Marshal(d)
	if err != nil {
		return false, fmt.Errorf("encode %s: %w", key, err)
	}
	if etag == "" {
		return s.Bucket.PutIfAbsent(ctx, key, objects.JSON, body)
	}
	_, err = s.Bucket.Client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &s.Bucket.Name, Key: &key, Body: bytes.NewReader(body), ContentType: aws.String(objects.JSON), IfMatch: &etag,
	})
	response, ok := errors.AsType[*awshttp.ResponseError](err)
	switch {
	case err == nil:
		return true, nil
	case ok && (response.HTTPStatusCode() == http.StatusPreconditionFailed || response.HTTPStatusCode() == http.StatusConflict):
		return false, nil
	}
	return false, fmt.Errorf("put object %s: %w", key, err)
}
