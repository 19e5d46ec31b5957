package report

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// labels checks that no number is called by the name of another one: where a
// finding has a danger of 12 minutes and a warning of 48, a sentence may not turn
// them around. Korean names a figure before it, so the nearest name before a number
// is what it is called; one after it excuses it, as that may name it too. English
// names figures on either side, so that nothing follows from its words.
func (v *verifier) labels(section, text string, facts []token) {
	if v.lang != Korean {
		return
	}
	known := newLabelling(facts)
	for _, t := range tokensOf(v.lang, text) {
		if t.kind != numberToken || !t.isIn(facts) {
			continue
		}
		own, called := known.of(t), known.nearest(t.before)
		if len(own) == 0 || called == "" || own[called] || known.excuses(t.after, own) {
			continue
		}
		v.add("mislabelled_number", section, strings.TrimSpace(tail(t.before, roleBytes)+t.text), "the number belongs to another figure of the finding")
	}
}

// labelling knows the words by which facts call their numbers.
type labelling struct {
	facts  []token
	labels [][]string
	// counts are how many facts have a word; one that all have tells nothing.
	counts map[string]int
}

func newLabelling(facts []token) labelling {
	l := labelling{counts: map[string]int{}}
	for _, fact := range facts {
		if fact.kind != numberToken {
			continue
		}
		labels := labelsOf(fact.before)
		labels = labels[max(0, len(labels)-maxLabels):]
		l.facts, l.labels = append(l.facts, fact), append(l.labels, labels)
		for _, label := range labels {
			l.counts[label]++
		}
	}
	return l
}

func (l labelling) tells(label string) bool {
	return l.counts[label] > 0 && l.counts[label] < len(l.facts)
}

// of are the telling words of all facts that say the same number.
func (l labelling) of(t token) map[string]bool {
	own := map[string]bool{}
	for i, fact := range l.facts {
		if !t.saidBy(fact) {
			continue
		}
		for _, label := range l.labels[i] {
			if l.tells(label) {
				own[label] = true
			}
		}
	}
	return own
}

// nearest is the last word of a text that tells one number from another.
func (l labelling) nearest(text string) string {
	nearest := ""
	for _, word := range labelsOf(text) {
		if label := l.labelIn(word); label != "" {
			nearest = label
		}
	}
	return nearest
}

// labelIn is the telling word that a word is, or begins with.
func (l labelling) labelIn(word string) string {
	best := ""
	for label := range l.counts {
		if l.tells(label) && strings.HasPrefix(word, label) && len(label) > len(best) {
			best = label
		}
	}
	return best
}

// excuses tells whether a text has one of a number's own words.
func (l labelling) excuses(text string, own map[string]bool) bool {
	for _, word := range wordsOf(text) {
		if own[l.labelIn(word)] {
			return true
		}
	}
	return false
}

// particle ends a Korean word without being a part of its name.
var particle = regexp.MustCompile(`(?:으로는|에서는|이었고|이었으며|이었습니다|이며|였고|였으며|였습니다|입니다|에서|까지|부터|으로|에는|이고|은|는|이|가|을|를|와|과|도|의|로|에|만|며)$`)

const (
	leastLabel = 2 // runes; a shorter word is a unit or a particle
	maxLabels  = 3 // words before a number that name it
)

// labelsOf are the words of the last phrase of a text.
func labelsOf(text string) []string {
	if cut := strings.LastIndexAny(strings.TrimRight(text, " ("), ",;:("); cut >= 0 {
		text = text[cut+1:]
	}
	return wordsOf(text)
}

// wordsOf are the words of a text without their particles.
func wordsOf(text string) []string {
	var labels []string
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) && r != '_' }) {
		if stem := particle.ReplaceAllString(word, ""); utf8.RuneCountInString(stem) >= leastLabel {
			word = stem
		}
		if utf8.RuneCountInString(word) >= leastLabel {
			labels = append(labels, word)
		}
	}
	return labels
}
