package alert

import "context"

// Say delivers a text that is no alert to where alerts of a scope go. It makes
// one attempt; its error is a *slack.Error, or that of the secret.
func (s Slack) Say(ctx context.Context, scope, text string) error {
	channel := s.bot(scope)
	if channel == "" {
		return s.webhook(ctx, scope, text)
	}
	_, err := s.post(ctx, channel, "", text)
	return err
}
