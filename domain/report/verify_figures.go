package report

import (
	"regexp"
	"slices"
	"strings"
)

// figureLabel is a kind of figure in both languages.
type figureLabel struct {
	name    string
	pattern *regexp.Regexp
}

// priority tells whether the label is one of a check's priority.
func (l figureLabel) priority() bool {
	return l.name == "high" || l.name == "medium" || l.name == "low"
}

func labelled(name, pattern string) figureLabel {
	return figureLabel{name, regexp.MustCompile(`(?i)` + pattern)}
}

// dictionary are the labels by which figures are told apart: of each group a
// number may have one.
var dictionary = [][]figureLabel{
	{
		labelled("factory_state", `factory_state`), labelled("infra_state", `infra_state`), labelled("risk_score", `risk_score`),
		labelled("fast", `\bfast\b`), labelled("slow", `\bslow\b`),
	},
	{
		labelled("temperature", `온도|\btemperatures?\b`), labelled("humidity", `습도|\bhumidity\b`), labelled("pressure", `기압|\bpressure\b`),
		labelled("fire", `화재|\bfire\b`), labelled("fall", `넘어짐|\bfall\b|fall_score`), labelled("bend", `굽힘|\bbend\b`),
		labelled("sound", `소음|\bsounds?\b`), labelled("spike", `급등|\bspikes?\b`), labelled("restart", `재시작|\brestart(?:s|ed)?\b`),
		labelled("gap", `공백|\bgaps?\b`), labelled("node", `노드|\bnodes?\b`), labelled("workload", `워크로드|\bworkloads?\b`), labelled("pod", `파드|\bpods?\b`),
		labelled("pipeline", `파이프라인|\bpipeline\b`), labelled("duplicate", `중복|\bduplicates?\b`), labelled("unreadable", `읽을 수 없|읽지 못|\bunreadable\b`),
		labelled("score", `risk score`), labelled("read", `읽기|\bread throttles\b`), labelled("write", `쓰기|\bwrite throttles\b`), labelled("system", `시스템 오류|\bsystem errors?\b`),
		labelled("drift", `동기화되지|\bout of sync\b`), labelled("sync", `동기화|\bsynced\b`), labelled("degraded", `\bdegraded\b`),
	},
	{
		labelled("warning", `경고|주의|\bwarnings?\b`), labelled("danger", `위험|\bdanger\b`), labelled("critical", `\bcritical\b`),
	},
}

// superlative is a role that is said after its number.
var superlative = regexp.MustCompile(`가장|(?i:\b(?:longest|highest|lowest|at most)\b)`)

var (
	wholeAfter  = regexp.MustCompile(`^(?:의)?(?:\s(?:샘플|레코드|객체|스냅샷|기록))?(?:\s(?:샘플|레코드|객체|스냅샷|기록))?\s?(?:중(?:에서|에)?(?:\s|$)|가운데)|^ expected\b`)
	wholeBefore = regexp.MustCompile(`(?i)(?:전체|기대|예상)(?:는|치는|값은| 샘플은| 샘플)? ?$|(?:^|\d |[,.;] )of (?:the |all |expected )*$|\bexpected(?: samples| records)? ?$`)
	attributive = regexp.MustCompile(`^(?:간)?(?:의| 동안의)\s`)
	clauseEnd   = regexp.MustCompile(`[,;:()]| and |\. `)
)

// labelOf is the label of a number in a group: its own, and the one that was said
// before in the text and may still hold. Korean names a figure between the number
// before and its own, unless it says "12분의 위험"; English within the clause.
func labelOf(lang Language, group []figureLabel, text string, t token) (own, carried string) {
	before, after := text[:t.start], text[t.end:]
	carried = either(lastLabel(group, before), firstLabel(group, after))
	if lang == Korean {
		if attributive.MatchString(after) {
			own = firstLabel(group, clause(after))
		}
		return either(own, lastLabel(group, t.before)), carried
	}
	near := before
	if cuts := clauseEnd.FindAllStringIndex(before, -1); cuts != nil {
		near = before[cuts[len(cuts)-1][1]:]
	}
	return either(lastLabel(group, near), firstLabel(group, clause(after))), carried
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// clause is a text up to the next clause.
func clause(text string) string {
	if cut := clauseEnd.FindStringIndex(text); cut != nil {
		return text[:cut[0]]
	}
	return text
}

func firstLabel(group []figureLabel, text string) string {
	best, name := len(text), ""
	for _, l := range group {
		if at := l.pattern.FindStringIndex(text); at != nil && at[0] < best {
			best, name = at[0], l.name
		}
	}
	return name
}

func lastLabel(group []figureLabel, text string) string {
	best, name := -1, ""
	for _, l := range group {
		if all := l.pattern.FindAllStringIndex(text, -1); all != nil && all[len(all)-1][0] > best {
			best, name = all[len(all)-1][0], l.name
		}
	}
	return name
}

func isWhole(text string, t token) bool {
	return wholeAfter.MatchString(text[t.end:]) || wholeBefore.MatchString(text[:t.start])
}

// labelledNumber is a number with its labels.
type labelledNumber struct {
	token
	// labels are its own, or where it has none of its own the carried ones.
	labels, carried [3]string
	whole           bool
	parts           bool
}

// figuresOf are the numbers of a text with their labels.
func figuresOf(lang Language, text string) []labelledNumber {
	var all []labelledNumber
	parts := false
	for _, t := range tokensOf(lang, text) {
		if t.kind != numberToken {
			continue
		}
		f := labelledNumber{token: t, whole: isWhole(text, t)}
		for i, group := range dictionary {
			f.labels[i], f.carried[i] = labelOf(lang, group, text, t)
		}
		if f.labels == [3]string{} {
			f.labels = f.carried
		}
		parts = parts || f.whole
		all = append(all, f)
	}
	for i := range all {
		all[i].parts = parts
	}
	return all
}

// figures checks that each number stands under the label that it has in a cited
// finding, and is a whole or a part as there.
func (v *verifier) figures(section, text string, cited []factText) {
	var known []labelledNumber
	for _, f := range cited {
		known = append(known, figuresOf(v.lang, f.text)...)
	}
	for _, said := range figuresOf(v.lang, text) {
		var same []labelledNumber
		for _, k := range known {
			if said.saidBy(k.token) {
				same = append(same, k)
			}
		}
		if len(same) > 0 && !slices.ContainsFunc(same, func(k labelledNumber) bool { return said.agrees(k, known) }) {
			v.add("mislabelled_number", section, said.text, "the number belongs to another figure of the finding")
		}
	}
}

// agrees tells whether a number is named as a fact is. Where the findings have but
// one label of a kind, a number may go without it.
func (n labelledNumber) agrees(fact labelledNumber, known []labelledNumber) bool {
	for i := range dictionary {
		said := n.labels[i]
		if said == fact.labels[i] || said != "" && said == fact.carried[i] {
			continue
		}
		another := func(k labelledNumber) bool {
			if said == "" {
				return fact.labels[i] != "" && k.labels[i] != "" && k.labels[i] != fact.labels[i] && n.carried[i] != fact.labels[i]
			}
			return k.labels[i] == said
		}
		if slices.ContainsFunc(known, another) {
			return false
		}
	}
	if fact.parts && n.whole != fact.whole {
		return false
	}
	rivals := slices.ContainsFunc(known, func(k labelledNumber) bool {
		return k.role != "" && k.role != fact.role && k.unit == fact.unit && k.value != fact.value && k.labels == fact.labels
	})
	if !rivals && fact.unit == "" || fact.role == "" || n.role == fact.role {
		return true
	}
	return !rivals && n.role == "" && superlative.MatchString(clause(n.after))
}

// directionSaid is what code says of the score's ends; no sentence has to.
var directionSaid = regexp.MustCompile(`100에 가까울수록 안전|100 is safest`)

// quoted is a verdict or the name of an event.
var quoted = regexp.MustCompile(`'([^']+)'`)

// statusWords are words of a finding that no wording may leave out.
var statusWords = []figureLabel{
	labelled("normal", `정상|\bnormal\b`), labelled("warning", `경고|주의|\bwarnings?\b`), labelled("danger", `위험|\bdanger\b`), labelled("critical", `\bcritical\b`),
	labelled("high", `우선순위 높음|높은\s?우선순위|우선순위(?:가|는)\s?높|\bpriority high\b|\bhigh priority\b`),
	labelled("medium", `우선순위 보통|보통\s?우선순위|우선순위(?:가|는)\s?보통|\bpriority medium\b|\bmedium priority\b`),
	labelled("low", `우선순위 낮음|낮은\s?우선순위|우선순위(?:가|는)\s?낮|\bpriority low\b|\blow priority\b`),
	labelled("ready", `\bready\b|준비`), labelled("good", `양호|\bgood\b`), labelled("partial", `결측|\bmissing\b`), labelled("test", `테스트|시험|\btests?\b`), labelled("testbed", `테스트베드|\btestbed\b`),
}

// whole checks that the sentences that cite a finding say all its numbers and its
// status: half a finding is a lie too.
func (v *verifier) whole(draft Draft) {
	said := map[string][]string{}
	for _, section := range draft.Sections {
		for _, sentence := range section.Sentences {
			for _, id := range sentence.Findings {
				said[id] = append(said[id], sentence.Text)
			}
		}
	}
	for _, section := range v.doc.worded() {
		for _, finding := range section.Findings {
			if texts := said[finding.ID]; len(texts) > 0 {
				v.wholeFinding(section.ID, v.facts[finding.ID], strings.Join(texts, "\n"))
			}
		}
	}
}

func (v *verifier) wholeFinding(section string, fact factText, text string) {
	tokens := tokensOf(v.lang, text)
	for _, number := range tokensOf(v.lang, directionSaid.ReplaceAllLiteralString(fact.text, "")) {
		if number.kind != numberToken || number.value == "0" && v.absent(text) {
			continue
		}
		if !slices.ContainsFunc(tokens, func(t token) bool { return t.kind == numberToken && t.value == number.value }) {
			v.add("missing_number", section, number.text, "no sentence says this number of the finding")
		}
	}
	if len(negated(v.lang, text)) < len(negated(v.lang, fact.text)) {
		v.add("missing_word", section, "", "no sentence says the negation of the finding")
	}
	for _, m := range quoted.FindAllStringSubmatch(fact.text, -1) {
		if !strings.Contains(strings.ToLower(text), strings.ToLower(m[1])) {
			v.add("missing_word", section, m[1], "no sentence says this of the finding")
		}
	}
	for _, status := range statusWords {
		if found := status.pattern.FindString(fact.plain); found != "" && !status.pattern.MatchString(text) {
			v.add("missing_word", section, found, "no sentence says this of the finding")
		}
	}
}
