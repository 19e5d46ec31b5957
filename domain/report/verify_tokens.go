package report

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"millrace/domain/exact"
)

// token is something in a text that must be a fact: a number, a date, a time or a
// name. What surrounds a number says what it is a number of, and belongs to it.
type token struct {
	kind tokenKind
	// value is normal: 1194 for 1,194, 51.2 for 51.20, yyyy-mm-dd with parts left
	// empty that were not said, hh:mm or hh:mm:ss, names in lower case.
	value string
	// unit, bound and role are empty where the text does not say.
	unit  string
	bound string
	role  string
	// text is what was written.
	text string
	// start and end are where it stands; before and after are the text up to the
	// numbers around it.
	start, end    int
	before, after string
}

type tokenKind int

const (
	numberToken tokenKind = iota + 1
	dateToken
	timeToken
	nameToken
	// spanToken is two times that a text joins to a span.
	spanToken
)

// scanner cuts a text into tokens, from left to right.
type scanner struct {
	lang   Language
	text   string
	at     int
	tokens []token
	// since is where the last number ended, as a role said before that is not the
	// next one's; timeEnd where the last time ended, 0 when something followed.
	since, timeEnd int
}

// tokensOf are the tokens of a text in a language. In Korean text every Latin word
// is a name, in English text only what looks like an id.
func tokensOf(lang Language, text string) []token {
	s := scanner{lang: lang, text: text}
	for s.at < len(s.text) {
		s.step()
	}
	s.surround()
	return s.tokens
}

// surround gives each number the text around it.
func (s *scanner) surround() {
	last := -1
	for i := range s.tokens {
		t := &s.tokens[i]
		if t.kind != numberToken {
			continue
		}
		t.before, t.after = s.text[:t.start], s.text[t.end:]
		if last >= 0 {
			t.before = s.text[s.tokens[last].end:t.start]
			s.tokens[last].after = t.before
		}
		last = i
	}
}

// joins is what stands between the two times of a span.
var joins = regexp.MustCompile(`^ ?(?:~|-|–|부터|에서|to|until|through) ?$`)

// joined adds the span that a time makes with the one before it.
func (s *scanner) joined(length int) {
	last := len(s.tokens) - 1
	if last < 0 || s.tokens[last].kind != timeToken {
		s.timeEnd = 0
		return
	}
	if s.timeEnd > 0 && last > 0 && s.tokens[last-1].kind == timeToken && joins.MatchString(s.text[s.timeEnd:s.at]) {
		from, to := s.tokens[last-1], s.tokens[last]
		s.tokens = append(s.tokens, token{kind: spanToken, value: from.value + "~" + to.value, text: from.text + "~" + to.text})
	}
	s.timeEnd = s.at + length
}

// tail is the end of a text, enough to tell what a number stands after.
func tail(text string, bytes int) string { return text[max(0, len(text)-bytes):] }

// sameLine is the end of a text that belongs together: what stands in another line
// or cell says nothing of a number.
func sameLine(text string) string { return text[strings.LastIndexAny(text, "\n|")+1:] }

// Lengths of the text before a number that is looked at.
const (
	nearBytes = 24
	roleBytes = 160
)

func (s *scanner) step() {
	r, size := utf8.DecodeRuneInString(s.text[s.at:])
	if !isWordRune(r) {
		s.at += size
		return
	}
	rest := s.text[s.at:]
	for _, read := range []func(string) (int, []token){s.instant, s.date, s.clock, s.word, s.number} {
		if n, found := read(rest); n > 0 {
			s.tokens = append(s.tokens, found...)
			if len(found) > 0 {
				s.joined(n)
			}
			s.at += n
			return
		}
	}
	s.at += size
}

func isWordRune(r rune) bool {
	return r < utf8.RuneSelf && (r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z')
}

func isDigitAt(text string, at int) bool { return at < len(text) && text[at] >= '0' && text[at] <= '9' }

var (
	instantPattern = regexp.MustCompile(`^(\d{4})-(\d{2})-(\d{2})T(\d{2}:\d{2})(:\d{2})?(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2})?`)
	datePatterns   = []*regexp.Regexp{
		regexp.MustCompile(`^(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})`),
		regexp.MustCompile(`^(?P<y>\d{4})\. (?P<m>\d{1,2})\. (?P<d>\d{1,2})\b`),
		regexp.MustCompile(`^(?P<y>\d{4}) ?년(?: ?(?P<m>\d{1,2}) ?월(?: ?(?P<d>\d{1,2}) ?일)?)?`),
		regexp.MustCompile(`^(?P<m>\d{1,2}) ?월(?: ?(?P<d>\d{1,2}) ?일)?`),
		regexp.MustCompile(`^(?P<mon>` + months + `)\.? (?P<d>\d{1,2})(?:st|nd|rd|th)?(?:,? (?P<y>\d{4}))?\b`),
		regexp.MustCompile(`^(?P<d>\d{1,2})(?:st|nd|rd|th)? (?P<mon>` + months + `)\b\.?(?:,? (?P<y>\d{4})\b)?`),
		regexp.MustCompile(`^(?P<mon>` + months + `) (?P<y>\d{4})\b`),
	}
	clockPatterns = []*regexp.Regexp{
		regexp.MustCompile(`^(?P<h>\d{1,2}):(?P<m>\d{2})(?::(?P<s>\d{2})(?:\.\d+)?)?(?: ?(?P<half>[AaPp])\.?[Mm]\b\.?)?`),
		regexp.MustCompile(`^(?P<h>\d{1,2}) ?시(?: ?(?P<m>\d{1,2}) ?분)?(?: ?(?P<s>\d{1,2}) ?초)?`),
		regexp.MustCompile(`^(?P<h>\d{1,2}) ?(?P<half>[AaPp])\.?[Mm]\b\.?`),
	}
	afternoon = regexp.MustCompile(`(오후|저녁) ?$`)
)

const months = `Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?`

var monthNumbers = map[string]string{
	"Jan": "01", "Feb": "02", "Mar": "03", "Apr": "04", "May": "05", "Jun": "06",
	"Jul": "07", "Aug": "08", "Sep": "09", "Oct": "10", "Nov": "11", "Dec": "12",
}

// instant reads 2026-01-01T09:10:00Z as a date and a time.
func (s *scanner) instant(rest string) (int, []token) {
	m := instantPattern.FindStringSubmatch(rest)
	if m == nil {
		return 0, nil
	}
	clock := m[4]
	if m[5] != "" && m[5] != ":00" {
		clock += m[5]
	}
	return len(m[0]), []token{
		{kind: dateToken, value: m[1] + "-" + m[2] + "-" + m[3], text: m[0]}, {kind: timeToken, value: clock, text: m[0]},
	}
}

func (s *scanner) date(rest string) (int, []token) {
	for _, pattern := range datePatterns {
		m := pattern.FindStringSubmatch(rest)
		if m == nil || isDigitAt(rest, len(m[0])) {
			continue
		}
		part := func(name string) string { return group(pattern, m, name) }
		month := part("m")
		if name := part("mon"); name != "" {
			month = monthNumbers[name[:3]]
		}
		value := part("y") + "-" + twoDigits(month) + "-" + twoDigits(part("d"))
		return len(m[0]), []token{{kind: dateToken, value: value, text: m[0]}}
	}
	return 0, nil
}

func (s *scanner) clock(rest string) (int, []token) {
	for _, pattern := range clockPatterns {
		m := pattern.FindStringSubmatch(rest)
		if m == nil || isDigitAt(rest, len(m[0])) || strings.HasPrefix(rest[len(m[0]):], "간") {
			continue
		}
		hour, half := twoDigits(group(pattern, m, "h")), strings.ToLower(group(pattern, m, "half"))
		if half == "p" || afternoon.MatchString(sameLine(tail(s.text[:s.at], nearBytes))) {
			hour = laterHalf(hour)
		} else if half == "a" && hour == "12" {
			hour = "00"
		}
		value := hour + ":" + twoDigits(orZero(group(pattern, m, "m")))
		if seconds := twoDigits(group(pattern, m, "s")); seconds != "" && seconds != "00" {
			value += ":" + seconds
		}
		return len(m[0]), []token{{kind: timeToken, value: value, text: m[0]}}
	}
	return 0, nil
}

func group(pattern *regexp.Regexp, match []string, name string) string {
	if i := pattern.SubexpIndex(name); i >= 0 {
		return match[i]
	}
	return ""
}

func orZero(text string) string {
	if text == "" {
		return "00"
	}
	return text
}

func twoDigits(text string) string {
	if len(text) == 1 {
		return "0" + text
	}
	return text
}

// laterHalf is an hour of the afternoon on a clock of 24.
func laterHalf(hour string) string {
	number, err := exact.Parse(hour)
	twelve := exact.FromInt(12)
	if err != nil || !number.Less(twelve) {
		return hour
	}
	return number.Add(twelve).String()
}

var (
	wordPattern   = regexp.MustCompile(`^[A-Za-z0-9]+(?:[-_./:@][A-Za-z0-9]+)*`)
	plainNumber   = regexp.MustCompile(`^[0-9]+(?:\.[0-9]+)?$`)
	numberAndUnit = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)-?((?:` + latinUnits + `)s?|k|K)$`)
	hasLetter     = regexp.MustCompile(`[A-Za-z]`)
	likeAnID      = regexp.MustCompile(`[-_./:@0-9]`)
)

const latinUnits = `milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|hours?|hrs?|h|days?|months?|C|hPa|bytes?|KB|KiB|MB|MiB|GB|GiB|TB|TiB|points?|percent|times`

// word reads a run of Latin letters, digits and what joins them in names. A number
// with its unit, and digits without letters, are left to number.
func (s *scanner) word(rest string) (int, []token) {
	run := wordPattern.FindString(rest)
	if !hasLetter.MatchString(run) || numberAndUnit.MatchString(run) {
		return 0, nil
	}
	if !likeAnID.MatchString(run) && s.lang == English {
		return len(run), nil
	}
	return len(run), []token{{kind: nameToken, value: strings.ToLower(run), text: run}}
}

var (
	digitsPattern   = regexp.MustCompile(`^[0-9][0-9,.]*`)
	groupedNumber   = regexp.MustCompile(`^[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?$`)
	magnitudes      = regexp.MustCompile(`^ ?(억|만|천|백|billion\b|million\b|thousand\b|k\b|K\b)`)
	negativePattern = regexp.MustCompile(`(?:^|[^\pL\pN])[-−]$|영하 ?$|[Mm]inus $`)
	magnitudeOf     = map[string]string{
		"억": "100000000", "만": "10000", "천": "1000", "백": "100",
		"billion": "1000000000", "million": "1000000", "thousand": "1000", "k": "1000", "K": "1000",
	}
)

// number reads a number with all that belongs to it. What looks like a number and
// is none keeps its text as value, which no fact has.
func (s *scanner) number(rest string) (int, []token) {
	n, value, ok := magnitudeNumber(rest)
	if n == 0 {
		return 0, nil
	}
	t := token{kind: numberToken, value: "?" + rest[:n]}
	if ok {
		if negativePattern.MatchString(sameLine(tail(s.text[:s.at], nearBytes))) {
			value = exact.Decimal{}.Sub(value)
		}
		t.value = value.String()
	}
	before, after := sameLine(tail(s.text[s.since:s.at], roleBytes)), rest[n:]
	unitLength := 0
	t.unit, unitLength = unitOf(after)
	n += unitLength
	t.start, t.end = s.at, s.at+n
	t.bound, t.role = boundOf(before, rest[n:]), roleOf(before)
	t.text = rest[:n]
	s.since = s.at + n
	if said := roleAfter.FindString(rest[n:]); said != "" {
		t.role = roleOf(said)
		s.since += len(said)
	}
	return n, []token{t}
}

// magnitudeNumber reads 1,194 and 1.2만 and 1만 2,000, and says how long it is.
func magnitudeNumber(rest string) (int, exact.Decimal, bool) {
	n, value, ok := readDigits(rest)
	if !ok {
		return n, value, false
	}
	m := magnitudes.FindStringSubmatch(rest[n:])
	if m == nil {
		return n, value, true
	}
	factor := exact.MustParse(magnitudeOf[m[1]])
	value, n = value.Mul(factor), n+len(m[0])
	more := strings.TrimPrefix(rest[n:], " ")
	if korean := m[1][0] >= utf8.RuneSelf; !korean || !isDigitAt(more, 0) {
		return n, value, true
	}
	length, smaller, ok := magnitudeNumber(more)
	if !ok || !smaller.Less(factor) {
		return n, value, true
	}
	return len(rest) - len(more) + length, value.Add(smaller), true
}

func readDigits(rest string) (int, exact.Decimal, bool) {
	run := strings.TrimRight(digitsPattern.FindString(rest), ",.")
	plain := run
	switch {
	case plainNumber.MatchString(run):
	case groupedNumber.MatchString(run):
		plain = strings.ReplaceAll(run, ",", "")
	default:
		return len(run), exact.Decimal{}, false
	}
	value, err := exact.Parse(plain)
	return len(run), value, err == nil
}

// unitPatterns are the units that are told apart; the first group is what belongs
// to the unit. A word that only begins like one (초과, 점검, 일부) is none.
var unitPatterns = []struct {
	unit    string
	pattern *regexp.Regexp
}{
	{"point of percent", regexp.MustCompile(`^( ?(?:%p|%포인트|퍼센트포인트|percentage points?))`)},
	{"percent", regexp.MustCompile(`^( ?(?:%|퍼센트)| ?프로(?:[ ,.]|$)|[- ]?per ?cent\b)`)},
	{"millisecond", regexp.MustCompile(`^( ?밀리초|[- ]?(?:ms|milliseconds?)\b)`)},
	{"second", regexp.MustCompile(`^( ?초|[- ]?(?:s|secs?|seconds?)\b)(?:[^과기반]|$)`)},
	{"minute", regexp.MustCompile(`^( ?분|[- ]?(?:mins?|minutes?)\b)(?:[^기석류]|$)`)},
	{"hour", regexp.MustCompile(`^( ?시간|[- ]?(?:h|hrs?|hours?)\b)`)},
	{"month", regexp.MustCompile(`^( ?개월|[- ]?months?\b)`)},
	{"day", regexp.MustCompile(`^( ?일|[- ]?days?\b)(?:[^부반정]|$)`)},
	{"celsius", regexp.MustCompile(`^( ?(?:° ?C|℃)|[- ]?(?:C|degrees(?: Celsius)?)\b)`)},
	{"pressure", regexp.MustCompile(`^([- ]?hPa\b)`)},
	{"kilobyte", regexp.MustCompile(`^([- ]?Ki?B\b)`)},
	{"megabyte", regexp.MustCompile(`^([- ]?Mi?B\b)`)},
	{"gigabyte", regexp.MustCompile(`^([- ]?Gi?B\b)`)},
	{"byte", regexp.MustCompile(`^( ?바이트|[- ]?bytes?\b)`)},
	{"point", regexp.MustCompile(`^( ?점|[- ]?points?\b)(?:[^검차진유]|$)`)},
	{"count", regexp.MustCompile(`^( ?(?:건|개|회)|[- ]?times\b)(?:[^선복전]|$)`)},
}

// unitOf is the unit that a text begins with, and how long it is.
func unitOf(after string) (unit string, length int) {
	for _, u := range unitPatterns {
		if m := u.pattern.FindStringSubmatch(after); m != nil {
			return u.unit, len(m[1])
		}
	}
	return "", 0
}

// Bounds of a number.
const (
	above = "above"
	below = "below"
)

var (
	aboveAfter  = regexp.MustCompile(`^ ?(?:을|를)? ?(?:이상|초과|넘|웃돌|or more\b|or higher\b|or above\b)`)
	belowAfter  = regexp.MustCompile(`^ ?(?:을|를)? ?(?:이하|미만|밑돌|or less\b|or lower\b|or below\b)`)
	aboveBefore = regexp.MustCompile(`(?i)(?:\b(?:at least|more than|over|above|greater than|exceed(?:s|ed|ing)?)|≥|>) ?$`)
	belowBefore = regexp.MustCompile(`(?i)(?:\b(?:at most|no more than|less than|fewer than|under|below)|≤|<) ?$`)
)

// boundOf tells whether a number is said to be a bound.
func boundOf(before, after string) string {
	switch {
	case aboveAfter.MatchString(after):
		return above
	case belowAfter.MatchString(after), belowBefore.MatchString(before):
		return below
	case aboveBefore.MatchString(before):
		return above
	}
	return ""
}

var roles = []struct {
	role    string
	pattern *regexp.Regexp
}{
	{"minimum", regexp.MustCompile(`(?i)최저|최소|가장 낮|\b(?:minimum|lowest|min|low of)\b`)},
	{"maximum", regexp.MustCompile(`(?i)최고|최대|가장 높|가장 긴|\b(?:maximum|highest|longest|max|peak(?:ed)?|up to|high of|reached)\b`)},
	{"average", regexp.MustCompile(`(?i)평균|\b(?:averaged?|mean|avg)\b`)},
}

// roleAfter is a role that English says after the number.
var roleAfter = regexp.MustCompile(`(?i)^,? (?:at (?:its|the|their) (?:lowest|highest|peak|minimum|maximum)|on average)\b`)

// roleOf is the role that was named last before a number.
func roleOf(before string) string {
	best, role := -1, ""
	for _, r := range roles {
		for _, at := range r.pattern.FindAllStringIndex(before, -1) {
			if at[0] > best {
				best, role = at[0], r.role
			}
		}
	}
	return role
}

// isIn tells whether a fact says the same, where it says anything about it.
func (t token) isIn(facts []token) bool {
	return slices.ContainsFunc(facts, t.saidBy)
}

func (t token) saidBy(fact token) bool {
	if t.kind != fact.kind {
		return false
	}
	switch t.kind {
	case dateToken:
		return partsAgree(strings.Split(t.value, "-"), strings.Split(fact.value, "-"))
	case timeToken:
		return t.value == fact.value || strings.HasPrefix(fact.value, t.value+":")
	case nameToken, spanToken:
		return t.value == fact.value
	}
	return t.value == fact.value && unitsAgree(t.unit, fact.unit) && (t.bound == "" || t.bound == fact.bound) &&
		(t.role == "" || fact.role == "" || t.role == fact.role)
}

func partsAgree(said, known []string) bool {
	for i, part := range said {
		if part != "" && part != known[i] {
			return false
		}
	}
	return true
}

// unitsAgree takes an unsaid unit for any, but a percentage is only a percentage.
func unitsAgree(said, known string) bool {
	if said == known {
		return true
	}
	return (said == "" || known == "") && said != "percent" && known != "percent"
}

// foreignRune is the first character that no checked text may have: digits that
// are not ASCII would escape the check of numbers, invisible ones that of words.
func foreignRune(text string) (rune, bool) {
	for _, r := range text {
		if r > unicode.MaxASCII && unicode.IsNumber(r) || unicode.Is(unicode.Cf, r) || unicode.IsControl(r) || unicode.Is(unicode.Mn, r) || r == utf8.RuneError {
			return r, true
		}
	}
	return 0, false
}
