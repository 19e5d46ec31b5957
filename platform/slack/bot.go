package slack

import (
	"context"
	"encoding/json"
	"net/http"
)

// webAPI is Slack's Web API.
const webAPI = "https://slack.com/api/"

// Message names a posted message.
type Message struct {
	Channel string
	TS      string
}

// Post posts a text to a channel with a bot token; thread, where set, is the
// message that is answered.
func (c Client) Post(ctx context.Context, token, channel, thread, text string) (Message, error) {
	payload := map[string]any{"channel": channel, "text": text, "unfurl_links": false, "unfurl_media": false}
	if thread != "" {
		payload["thread_ts"] = thread
	}
	return c.call(ctx, token, "chat.postMessage", payload)
}

// Edit replaces the text of a message. Doing it again changes nothing.
func (c Client) Edit(ctx context.Context, token string, m Message, text string) (Message, error) {
	return c.call(ctx, token, "chat.update", map[string]any{"channel": m.Channel, "ts": m.TS, "text": text})
}

// transient are the Web API's words for errors that pass.
var transient = map[string]bool{
	"internal_error": true, "fatal_error": true, "service_unavailable": true, "request_timeout": true, "team_added_to_org": true, "accesslimited": true,
}

// CodeGone are the words for a message that can't be edited any more.
var CodeGone = map[string]bool{"message_not_found": true, "cant_update_message": true, "edit_window_closed": true, "thread_not_found": true}

func (c Client) call(ctx context.Context, token, method string, payload any) (Message, error) {
	base := c.API
	if base == "" {
		base = webAPI
	}
	if err := checkURL(base); err != nil {
		return Message{}, err
	}
	status, header, body, err := c.post(ctx, base+method, token, payload)
	if err != nil {
		return Message{}, err
	}
	if status != http.StatusOK {
		return Message{}, failure(status, header, "")
	}
	var answer struct {
		OK      bool   `json:"ok"`
		Error   string `json:"error"`
		Channel string `json:"channel"`
		TS      string `json:"ts"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return Message{}, &Error{Failure: Unknown, Status: status, Cause: "the answer is no JSON"}
	}
	switch {
	case answer.OK:
		return Message{Channel: answer.Channel, TS: answer.TS}, nil
	case answer.Error == "ratelimited" || answer.Error == "rate_limited":
		return Message{}, &Error{Failure: Limited, Status: status, Code: word(answer.Error), RetryAfter: retryAfter(header)}
	case transient[answer.Error]:
		return Message{}, &Error{Failure: Unavailable, Status: status, Code: word(answer.Error)}
	}
	return Message{}, &Error{Failure: Rejected, Status: status, Code: word(answer.Error)}
}
