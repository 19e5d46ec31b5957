package report

import (
	"regexp"
	"slices"
	"strings"
)

// sameNegation are ways to say the same not: each is written as the other before
// negations are compared.
var sameNegation = []struct {
	said    *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?:\s?에)?\s?포함(?:되지|하지)\s?(?:는\s?)?않`), "에서 제외했"},
	{regexp.MustCompile(`준비되지\s?않은`), "미준비"},
	{regexp.MustCompile(`(?:이|가|은|는)?\s?(?:발생|관측|확인|감지|보고|기록|측정|수집)(?:되지|하지)\s?(?:는\s?)?않`), " 없"},
}

var (
	koreanNegation = regexp.MustCompile(`아니|아닌|아닙|않|못[했하한]|없|\s안\s`)
	negatedBefore  = regexp.MustCompile(`([가-힣A-Za-z0-9_-]+)[)'"]?\s?$`)
	passive        = regexp.MustCompile(`(?:되지|하지)$`)
	// englishNegation has the word that is negated as its first group.
	englishNegation = regexp.MustCompile(`(?i)(?:\b(?:no|not|never|none|nothing|without|neither|nor|cannot)\b|n't\b)(?:\s(?:a|an|the|any|of|yet|be|been))*\s?([A-Za-z_-]*)`)
)

// negated are the words that a text negates.
func negated(lang Language, text string) []string {
	var words []string
	if lang == English {
		for _, m := range englishNegation.FindAllStringSubmatch(text, -1) {
			words = append(words, stem(m[1]))
		}
		return words
	}
	text = normalNegation(text)
	for _, at := range koreanNegation.FindAllStringIndex(text, -1) {
		word := ""
		if m := negatedBefore.FindStringSubmatch(text[:at[0]]); m != nil {
			word = strings.ToLower(passive.ReplaceAllString(particle.ReplaceAllString(m[1], ""), ""))
		}
		words = append(words, word)
	}
	return words
}

func normalNegation(text string) string {
	for _, same := range sameNegation {
		text = same.said.ReplaceAllString(text, same.instead)
	}
	return text
}

// negations refuses to negate what no cited finding negates, and to affirm what
// one negates. That there was none of what a finding counts 0 of is no negation.
func (v *verifier) negations(section, text string, cited []factText) {
	said := negated(v.lang, text)
	var known []string
	for _, f := range cited {
		known = append(known, negated(v.lang, f.text)...)
	}
	for i, word := range said {
		if !slices.Contains(known, word) && !v.countedZero(text, word, i, cited) {
			v.add("negation", section, word, "no cited finding negates this")
		}
	}
	for _, word := range known {
		if word != "" && v.affirmed(word, cited) {
			v.add("negation", section, word, "a finding that says this with and without a negation has to be said as it stands")
			continue
		}
		if word == "" || slices.Contains(said, word) && v.times(text, word) <= countOf(said, word) {
			continue
		}
		if v.times(text, word) > countOf(said, word) {
			v.add("negation", section, word, "a cited finding says that it is not so")
		}
	}
}

// countedZero tells whether the nth negation of a text says that there was none of
// what a cited finding counts 0 of.
func (v *verifier) countedZero(text, word string, nth int, cited []factText) bool {
	var before, after string
	if v.lang == Korean {
		text = normalNegation(text)
		at := koreanNegation.FindAllStringIndex(text, -1)[nth]
		if !strings.HasPrefix(text[at[0]:], "없") {
			return false
		}
		before = sinceNumber(text[:at[0]])
	} else {
		at := englishNegation.FindAllStringIndex(text, -1)[nth]
		before, after = text[:at[0]], clause(text[at[0]:])
		if cuts := clauseEnd.FindAllStringIndex(before, -1); cuts != nil {
			before = before[cuts[len(cuts)-1][1]:]
		}
	}
	for _, f := range cited {
		if !f.countsZero() {
			continue
		}
		for _, number := range figuresOf(v.lang, f.text) {
			if number.value == "0" && noneOf(before, after, word, number) {
				return true
			}
		}
	}
	return false
}

// noneOf tells whether what stands around a negation names what a number counts:
// by its labels, or by the word itself where it has none.
func noneOf(before, after, word string, number labelledNumber) bool {
	named := false
	for i, group := range dictionary {
		said := either(lastLabel(group, before), firstLabel(group, after))
		if said != number.labels[i] && said != number.carried[i] {
			return false
		}
		named = named || said != ""
	}
	return named || word != "" && strings.Contains(strings.ToLower(number.before), word)
}

// sinceNumber is the end of a text after its last number.
func sinceNumber(text string) string {
	for _, t := range slices.Backward(tokensOf(Korean, text)) {
		if t.kind == numberToken {
			return text[t.end:]
		}
	}
	return text
}

// absent tells whether a text says of something that there was none.
func (v *verifier) absent(text string) bool {
	all := judgements[v.lang]
	return all[len(all)-1].said.MatchString(text)
}

// affirmed tells whether a finding says a word without negating it as well.
func (v *verifier) affirmed(word string, cited []factText) bool {
	return slices.ContainsFunc(cited, func(f factText) bool {
		return v.times(f.text, word) > countOf(negated(v.lang, f.text), word)
	})
}

// times is how often a text has a word.
func (v *verifier) times(text, word string) int {
	if v.lang == Korean {
		return strings.Count(strings.ToLower(normalNegation(text)), word)
	}
	n := 0
	for _, found := range englishWord.FindAllString(text, -1) {
		n += int(oneIf(stem(found) == word))
	}
	return n
}

func countOf(words []string, word string) int {
	n := 0
	for _, w := range words {
		n += int(oneIf(w == word))
	}
	return n
}
