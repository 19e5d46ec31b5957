package broker

import "strings"

// Identities that are no factories: the common names of the certificates that the worker and an
// onlooker hold.
const (
	// WorkerIdentity may send job documents to every factory, and nothing else.
	WorkerIdentity = "worker"
	// BridgeIdentity may watch all topics, and publish to none.
	BridgeIdentity = "bridge"
)

// policy is what an identity may do, as an AWS IoT policy attached to its certificate would say.
// Patterns are topics in which "+" stands for exactly one level and a final "#" for any number.
type policy struct {
	publish   []string
	subscribe []string
}

// policyFor returns the policy of the certificate whose common name is identity. A name that is
// neither the worker's nor the bridge's is a factory.
func policyFor(identity string) policy {
	switch identity {
	case WorkerIdentity:
		return policy{publish: []string{"aegis/+/jobs/+"}}
	case BridgeIdentity:
		return policy{subscribe: []string{"aegis/#"}}
	}
	own := "aegis/" + identity + "/"
	return policy{
		publish: []string{
			own + "factory_state", own + "infra_state", own + "image_snapshot",
			own + "jobs/+/result",
		},
		subscribe: []string{own + "jobs/+"},
	}
}

func (p policy) mayPublish(topic string) bool {
	// A wildcard in a topic name would match a pattern's own wildcard literally.
	if strings.ContainsAny(topic, "+#") {
		return false
	}
	return anyCovers(p.publish, topic)
}

func (p policy) maySubscribe(filter string) bool { return anyCovers(p.subscribe, filter) }

func anyCovers(patterns []string, filter string) bool {
	for _, pattern := range patterns {
		if covers(pattern, filter) {
			return true
		}
	}
	return false
}

// covers reports whether every topic that filter matches is matched by pattern too.
func covers(pattern, filter string) bool {
	want, have := strings.Split(pattern, "/"), strings.Split(filter, "/")
	for i, level := range want {
		switch {
		case level == "#":
			return true
		case i >= len(have) || have[i] == "#":
			return false
		case level == "+":
			if have[i] == "" {
				return false
			}
		case level != have[i]:
			return false
		}
	}
	return len(want) == len(have)
}
