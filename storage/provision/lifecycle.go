package provision

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// lifecycleRule is one rule by key prefix; days of 0 ask for nothing.
type lifecycleRule struct {
	id, prefix      string
	transitionDays  int32
	class           types.TransitionStorageClass
	noncurrentDays  int32
	abortUploadDays int32
}

// lifecycleRules are those of the seeds ("보존 정책 구분", ALP 9.3). Nothing that
// is current ever expires. processed_agg/, image_snapshot/, reports/ and
// provenance/ stay where they are; archive/ is written to its class directly;
// executions/ move to the infrequent class after 14 days by a job, because a
// lifecycle rule can't do so before 30. Old versions below artifacts/ are kept:
// items name them.
var lifecycleRules = []lifecycleRule{
	{id: "raw", prefix: "raw/", transitionDays: 90, class: types.TransitionStorageClassGlacierIr, noncurrentDays: 90},
	{id: "processed", prefix: "processed/", transitionDays: 365, class: types.TransitionStorageClassStandardIa, noncurrentDays: 90},
	{id: "latest", prefix: "latest/", noncurrentDays: 30},
	{id: "artifacts", prefix: "artifacts/", transitionDays: 30, class: types.TransitionStorageClassStandardIa},
	{id: "uploads", prefix: "", abortUploadDays: 7},
}

// Lifecycle says how the bucket's objects age.
type Lifecycle struct {
	// SmallObjects has objects under 128 KiB moved to colder classes too. S3
	// leaves them by default, because it bills at least 128 KiB there.
	SmallObjects bool
}

func (l Lifecycle) rules() []types.LifecycleRule {
	rules := make([]types.LifecycleRule, len(lifecycleRules))
	for i, rule := range lifecycleRules {
		rules[i] = rule.input(l)
	}
	return rules
}

// anySize is an object size below that of any object of ours: naming a size
// lifts S3's own lower limit for transitions.
const anySize = 1

func (r lifecycleRule) input(l Lifecycle) types.LifecycleRule {
	rule := types.LifecycleRule{ID: aws.String("millrace-" + r.id), Status: types.ExpirationStatusEnabled}
	rule.Filter = &types.LifecycleRuleFilter{Prefix: aws.String(r.prefix)}
	if r.transitionDays > 0 {
		rule.Transitions = []types.Transition{{Days: &r.transitionDays, StorageClass: r.class}}
		if l.SmallObjects {
			rule.Filter = &types.LifecycleRuleFilter{
				And: &types.LifecycleRuleAndOperator{Prefix: aws.String(r.prefix), ObjectSizeGreaterThan: aws.Int64(anySize)},
			}
		}
	}
	if r.noncurrentDays > 0 {
		rule.NoncurrentVersionExpiration = &types.NoncurrentVersionExpiration{NoncurrentDays: &r.noncurrentDays}
	}
	if r.abortUploadDays > 0 {
		rule.AbortIncompleteMultipartUpload = &types.AbortIncompleteMultipartUpload{DaysAfterInitiation: &r.abortUploadDays}
	}
	return rule
}

// differences name the rules that are missing or other than they must be, and
// those that nobody here asked for.
func (l Lifecycle) differences(got []types.LifecycleRule) []string {
	var found []string
	want := make(map[string]bool)
	for _, rule := range l.rules() {
		id := aws.ToString(rule.ID)
		want[id] = true
		at := slices.IndexFunc(got, func(g types.LifecycleRule) bool { return aws.ToString(g.ID) == id })
		switch {
		case at < 0:
			found = append(found, "rule "+id+" is missing")
		case ruleText(got[at]) != ruleText(rule):
			found = append(found, fmt.Sprintf("rule %s is %s, not %s", id, ruleText(got[at]), ruleText(rule)))
		}
	}
	for _, rule := range got {
		if id := aws.ToString(rule.ID); !want[id] {
			found = append(found, "rule "+id+" is not ours")
		}
	}
	return found
}

func ruleText(rule types.LifecycleRule) string {
	text := []string{string(rule.Status)}
	if filter := rule.Filter; filter != nil {
		text = append(text, "prefix "+aws.ToString(filter.Prefix))
		if filter.And != nil {
			text = []string{string(rule.Status), "prefix " + aws.ToString(filter.And.Prefix), fmt.Sprintf("over %d B", aws.ToInt64(filter.And.ObjectSizeGreaterThan))}
		}
	}
	for _, transition := range rule.Transitions {
		text = append(text, fmt.Sprintf("%s after %d d", transition.StorageClass, aws.ToInt32(transition.Days)))
	}
	if expiry := rule.Expiration; expiry != nil {
		text = append(text, fmt.Sprintf("expires after %d d", aws.ToInt32(expiry.Days)))
	}
	if expiry := rule.NoncurrentVersionExpiration; expiry != nil {
		text = append(text, fmt.Sprintf("old versions expire after %d d", aws.ToInt32(expiry.NoncurrentDays)))
	}
	if abort := rule.AbortIncompleteMultipartUpload; abort != nil {
		text = append(text, fmt.Sprintf("uploads end after %d d", aws.ToInt32(abort.DaysAfterInitiation)))
	}
	return strings.Join(text, ", ")
}
