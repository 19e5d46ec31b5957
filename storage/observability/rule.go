package observability

import (
	"context"
	"errors"
	"iter"
	"time"

	"millrace/domain/observability"
	"millrace/storage/table"
)

// Errors of rules.
var (
	ErrRuleNotFound = errors.New("alert rule not found")
	ErrRuleExists   = errors.New("alert rule exists already")
	ErrRuleChanged  = errors.New("alert rule has another revision")
	ErrTooManyRules = errors.New("too many alert rules")
)

// ruleItem is a rule with its keys. GSI1 lists the rules of all applications.
type ruleItem struct {
	observability.Rule
	PK     string `json:"PK"`
	SK     string `json:"SK"`
	GSI1PK string `json:"GSI1PK"`
	GSI1SK string `json:"GSI1SK"`
}

func itemOf(r observability.Rule) ruleItem {
	return ruleItem{
		Rule: r, PK: observability.AppPK(r.AppID), SK: observability.RuleSK(r.RuleID),
		GSI1PK: observability.RulesPK, GSI1SK: observability.AppPK(r.AppID) + "#" + r.RuleID,
	}
}

func ruleKey(appID, ruleID string) table.Key {
	return table.Key{Partition: observability.AppPK(appID), Sort: observability.RuleSK(ruleID)}
}

// CreateRule keeps a new rule. Creating the same rule again, as a retry does, is
// no error.
func (s Store) CreateRule(ctx context.Context, r observability.Rule) (observability.Rule, error) {
	count, err := s.Table.Count(ctx, observability.AppPK(r.AppID), observability.RulePrefix, nil)
	if err != nil {
		return r, err
	}
	absent := s.Table.Absent()
	err = s.Table.Put(ctx, itemOf(r), &absent)
	var conflict *table.ConflictError
	switch {
	case errors.As(err, &conflict):
		var current observability.Rule
		if err := table.Decode(conflict.Current, &current); err != nil {
			return r, err
		}
		if current.Rev != 1 || !sameSpec(current.Spec, r.Spec) {
			return current, ErrRuleExists
		}
		return current, nil
	case err != nil:
		return r, err
	case count >= observability.MaxRules:
		return r, errors.Join(ErrTooManyRules, s.Table.Delete(ctx, ruleKey(r.AppID, r.RuleID), nil))
	}
	return r, nil
}

func sameSpec(a, b observability.Spec) bool {
	same := a.Threshold.Equal(b.Threshold)
	a.Threshold = b.Threshold
	return same && a == b
}

// Rule reads one rule; ErrRuleNotFound when there is none.
func (s Store) Rule(ctx context.Context, appID, ruleID string) (observability.Rule, error) {
	var r observability.Rule
	found, err := s.Table.Get(ctx, ruleKey(appID, ruleID), &r)
	if err == nil && !found {
		err = ErrRuleNotFound
	}
	return r, err
}

// Rules are the rules of an application, by id.
func (s Store) Rules(ctx context.Context, appID string) ([]observability.Rule, error) {
	items, _, err := s.Table.Page(ctx, table.PageQuery{
		Partition: observability.AppPK(appID), Prefix: observability.RulePrefix, Limit: 2 * observability.MaxRules, Consistent: true,
	})
	if err != nil {
		return nil, err
	}
	return decodeRules(items)
}

func decodeRules(items []table.Item) ([]observability.Rule, error) {
	rules := make([]observability.Rule, len(items))
	for i, item := range items {
		if err := table.Decode(item, &rules[i]); err != nil {
			return nil, err
		}
	}
	return rules, nil
}

// ChangeRule replaces what a rule says, provided that it still has revision rev.
// A rule that watches something else from now on ends what it fired.
func (s Store) ChangeRule(ctx context.Context, appID, ruleID string, rev int64, spec observability.Spec, now time.Time) (observability.Rule, error) {
	r, err := s.Rule(ctx, appID, ruleID)
	if err != nil {
		return r, err
	}
	if r.Rev != rev {
		return r, ErrRuleChanged
	}
	another := r.Kind != spec.Kind
	r.Spec, r.UpdatedAt = spec, now.UTC()
	condition := s.Table.Revision(rev)
	r.Rev++
	err = changed(s.Table.Put(ctx, itemOf(r), &condition))
	if err != nil || !another {
		return r, err
	}
	return r, s.endFirings(ctx, appID, ruleID, now)
}

// DeleteRule removes a rule, provided that it still has revision rev, and ends
// what it fired, for no rollup judges it again; rev 0 stands for any. Removing
// what is not there is no error: a retry ends what the first try left.
func (s Store) DeleteRule(ctx context.Context, appID, ruleID string, rev int64, now time.Time) error {
	var condition *table.Condition
	if rev != 0 {
		_, err := s.Rule(ctx, appID, ruleID)
		switch {
		case errors.Is(err, ErrRuleNotFound):
			return s.endFirings(ctx, appID, ruleID, now)
		case err != nil:
			return err
		}
		same := s.Table.Revision(rev)
		condition = &same
	}
	if err := s.Table.Delete(ctx, ruleKey(appID, ruleID), condition); err != nil {
		return changed(err)
	}
	return s.endFirings(ctx, appID, ruleID, now)
}

// endFirings ends the firings of a rule that is gone, or is another one. The notes of budgets stay
// for their day: a budget made anew is not told of again.
func (s Store) endFirings(ctx context.Context, appID, ruleID string, now time.Time) error {
	notes, err := s.FiredNotes(ctx, appID)
	if err != nil {
		return err
	}
	for _, note := range notes {
		if note.RuleID() != ruleID || note.OfBudget() {
			continue
		}
		if err := s.Resolve(ctx, appID, note, now); err != nil {
			return err
		}
	}
	return nil
}

func changed(err error) error {
	if _, ok := errors.AsType[*table.ConflictError](err); ok {
		return ErrRuleChanged
	}
	return err
}

// AllRules walks the rules of all applications, those of one together.
func (s Store) AllRules(ctx context.Context) iter.Seq2[observability.Rule, error] {
	return func(yield func(observability.Rule, error) bool) {
		for cursor := ""; ; {
			entries, next, err := s.Table.Page(ctx, table.PageQuery{Index: gsi1, Partition: observability.RulesPK, Cursor: cursor, Limit: appPage})
			if err != nil {
				yield(observability.Rule{}, err)
				return
			}
			items, err := s.fetch(ctx, entries)
			if err != nil {
				yield(observability.Rule{}, err)
				return
			}
			rules, err := decodeRules(items)
			if err != nil {
				yield(observability.Rule{}, err)
				return
			}
			for _, r := range rules {
				if !yield(r, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			cursor = next
		}
	}
}
