package report

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// closed checks a sentence that is no finding as it stands against a closed
// vocabulary: it may say the words of the findings that it cites, and words that
// state nothing. Rules about words that must not be said can't be complete; this
// one is, and what it refuses in doubt the template says.
func (v *verifier) closed(section, text string, cited []factText) {
	if found := onlyCode[v.lang].FindString(text); found != "" {
		v.add("direction", section, found, "what the score's direction means is said by code alone: leave it out")
	}
	v.meant(section, text, cited)
	plain := text
	for _, f := range cited {
		for _, name := range f.names {
			plain = strings.ReplaceAll(plain, name, "x")
		}
	}
	for _, status := range statusWords {
		found := status.pattern.FindString(text)
		if found != "" && status.priority() && !slices.ContainsFunc(cited, func(f factText) bool { return status.pattern.MatchString(f.text) }) {
			v.add("judgement", section, found, "no cited finding says so")
		}
	}
	unknown := v.unknownEnglish
	if v.lang == Korean {
		unknown = v.unknownKorean
	}
	if word := unknown(plain, cited); word != "" {
		v.add("wording", section, word, "the word is in no finding that the sentence cites")
	}
	v.negations(section, text, cited)
}

var (
	// fixed is a finding about the report itself.
	fixed = regexp.MustCompile(`초안|(?i:\bdraft\b)`)
	// asks is a finding that asks people to do something, done what says that they did.
	asks = regexp.MustCompile(`(?:확인|점검)하(?:세요|십시오)|\bCheck\b`)
	// real is what only a denial may have.
	real = regexp.MustCompile(`실제|사고|장애|(?i:\breal\b|\bincidents?\b)`)
	done = regexp.MustCompile(`(?:확인|점검)(?:을|이|은|는)?\s?(?:했|하였|한|되었|되어|됐|된|완료|마[쳤치친])|(?i:\bchecked\b)`)
)

// bothReady tells whether a finding tells of what was ready and of what was not.
func bothReady(text string) bool {
	text = normalNegation(text)
	not := strings.Count(text, "미준비")
	return not > 0 && strings.Count(text, "준비") > not
}

// meant checks what a finding means as a whole: what the report is, is said in
// code's words alone; what is to be done is not said to be done; and times of two
// events are not mixed.
func (v *verifier) meant(section, text string, cited []factText) {
	if v.lang == Korean && strings.Contains(normalNegation(text), "포함") && !slices.ContainsFunc(cited, func(f factText) bool { return strings.Contains(f.text, "포함") }) {
		v.add("wording", section, "포함", "no cited finding says so")
	}
	spans := 0
	for _, f := range cited {
		switch {
		case fixed.MatchString(f.text), bothReady(f.text):
			v.add("wording", section, "", "this finding has to be said as it stands")
		case asks.MatchString(f.text) && done.MatchString(text):
			v.add("wording", section, done.FindString(text), "the finding asks for this to be done")
		case denied[v.lang].MatchString(f.text) && (!denied[v.lang].MatchString(text) || real.MatchString(denied[v.lang].ReplaceAllLiteralString(text, " "))):
			v.add("negation", section, "", "the finding says that there was no real incident")
		}
		spans += int(oneIf(slices.ContainsFunc(f.tokens, func(t token) bool { return t.kind == spanToken })))
	}
	if spans > 1 {
		v.add("wording", section, "", "a sentence may word one event only")
	}
}

// asItStands tells whether a sentence is one of the findings that it cites, word
// for word.
func asItStands(text string, cited []factText) bool {
	return slices.ContainsFunc(cited, func(f factText) bool { return f.text == text })
}

// onlyCode says which end of the score is the good one.
var onlyCode = map[Language]*regexp.Regexp{
	Korean:  regexp.MustCompile(`수록`),
	English: regexp.MustCompile(`(?i)\b(?:safest|safer|closer|nearer)\b|\bis (?:better|worse|best|worst)\b`),
}

var (
	hangulRun = regexp.MustCompile(`[가-힣]+`)
	// unitWord is what follows a number or a name without a space.
	unitWord = regexp.MustCompile(`^(?:밀리초|퍼센트포인트|퍼센트|포인트|개월|시간|바이트|년|월|일|시|분|초|건|개|회|점|도|곳|대|만|천|억|프로)?(.*)$`)
	// endings are particles, and the ends of verbs that a noun takes.
	endings = regexp.MustCompile(`^(?:이었습니다|였습니다|이었으며|이었고|입니다|습니다|에서는|으로는|으로|에서|에는|까지|부터|보다|이며|이고|이나|하였|되었|므로|으므로|으나|지만|으며|세요|십시오|니다|은|는|이|가|을|를|의|에|로|와|과|도|만|나|며|고|었|았|였|했|하|한|할|해|하여|여|되|된|될|됐|돼|됨|함|임|인|던|어|아|지|기|다|간|률|치|값|들|합|됩|면|시|졌|진|데|후|전|씩|별|당|적)*$`)
	// openKorean are beginnings of words that state nothing by themselves: what they
	// are said of has to be in a finding. Words of direction, judgement and absence
	// among them are judged by rules of their own.
	openKorean = regexp.MustCompile(`^(?:상태|구간|있[었습는으고어던]|있다|발생|유지|전반적|기록|사이|나타[나났난내냈]|보[였입이]|가운데|전체|확인|그중|중$|중에|것[은이으을]|것입|관련|이어[지졌집진]|동안|수준|점검|주십시오|주세요|하루|총$|총합|각각|및$|또한|그리고|이날|이 날|해당|본$|당일|날|오전|오후|시작|필요|들어[왔와온]|받[았은]|두드러|지속|집계|측정|수집|관측|감지|보고되|종합|판정|이벤트|데이터|시간|횟수|건수|수치|값|점수|지표|항목|공장[은의에이]|공장$|미준비|관측|도달|까지|부터|합계|누적|운영|리포트|상승|올랐|올라|증가|늘[었어]|하락|떨어|감소|줄[었어]|없[었음으고이습]|않[았은는으습고아]|아니|아닌|아닙|기대$|예상$|모두|함께|그$|이$|였[습으고]|이었|이며|됩니다|되었|했[습으고]|하였)`)
	// paired are words whose forms differ too much to be told by their beginning.
	paired = []*regexp.Regexp{
		regexp.MustCompile(`높[음은게았]`), regexp.MustCompile(`낮[음은게았]`), regexp.MustCompile(`긴$|길[었게고]|가장`), regexp.MustCompile(`보통|중간`),
		regexp.MustCompile(`준비되지|미준비`), regexp.MustCompile(`읽을|읽지|수$`), regexp.MustCompile(`^(?:포함|제외)`),
	}
)

// unknownKorean is the first Korean word that neither a finding nor the vocabulary
// has.
func (v *verifier) unknownKorean(text string, cited []factText) string {
	var known []string
	for _, f := range cited {
		known = append(known, hangulRun.FindAllString(f.text, -1)...)
	}
	for _, at := range hangulRun.FindAllStringIndex(text, -1) {
		word := text[at[0]:at[1]]
		if at[0] > 0 && attached(text[at[0]-1]) {
			if rest := unitWord.FindStringSubmatch(word)[1]; endings.MatchString(rest) || openKorean.MatchString(rest) {
				continue
			}
		}
		if at[0] > 1 && text[at[0]-1] == ' ' && isDigitAt(text, at[0]-2) && endings.MatchString(unitWord.FindStringSubmatch(word)[1]) {
			continue
		}
		if openKorean.MatchString(word) || pairedIn(word, cited) || slices.ContainsFunc(known, func(k string) bool { return sameWord(word, k) }) {
			continue
		}
		return word
	}
	return ""
}

// attached tells whether a word after this byte belongs to a number or a name.
func attached(b byte) bool {
	return isWordRune(rune(b)) || strings.IndexByte(`%)'"`, b) >= 0 || b == 0x83 // the last byte of ℃
}

func pairedIn(word string, cited []factText) bool {
	return slices.ContainsFunc(paired, func(p *regexp.Regexp) bool {
		return p.MatchString(word) && slices.ContainsFunc(cited, func(f factText) bool {
			return slices.ContainsFunc(hangulRun.FindAllString(f.text, -1), p.MatchString)
		})
	})
}

// sameWord tells whether two Korean words differ in their endings only.
func sameWord(word, known string) bool {
	if word == known {
		return true
	}
	common := 0
	for common < len(word) && common < len(known) {
		r, size := utf8.DecodeRuneInString(word[common:])
		if k, _ := utf8.DecodeRuneInString(known[common:]); k != r {
			break
		}
		common += size
	}
	return common >= 2*len("가") && endings.MatchString(word[common:]) && endings.MatchString(known[common:])
}

var (
	englishWord = regexp.MustCompile(`[A-Za-z]+(?:'[a-z]+)?`)
	// extreme is a role, and not what something was.
	extreme = regexp.MustCompile(`(?i)\b(?:a|the|its) (?:low|high) of\b`)
	// bounding is a bound of a number, which is checked with the number.
	bounding = regexp.MustCompile(`(?i)\b(?:at (?:least|most)|no more than|(?:less|more|fewer|greater) than|over|above|below|under|up to)\s(?:[0-9])`)
	suffixes = regexp.MustCompile(`(?:ings?|ments?|ement|ed|es|s|d|ly|e)$`)
	// openEnglish are words that state nothing by themselves, or that rules of their
	// own judge: roles, directions and negations.
	openEnglish = newVocabulary(`a an the of on in at to from for with and or but was were is are be been being it its their this that these those there which who
		what had has have by as since overall day days daily during between both each total in all while when where then also into until through
		staying stayed stay lasted lasting last lasts peaked peak peaks averaged average averages averaging reached reach reaching recorded record records
		detected observed seen noted measured counted collected expected judged judgement verdict level levels status state period periods time times
		lowest highest longest minimum maximum mean
		rose rising dropped drop fell fall falling decreased increased came stood amounted totalled remained spent
		no not none never nothing without neither nor was wasn't weren't didn't
		minute minutes second seconds hour hours percent degrees points point count counts rate rates sample samples value values score scores
		january february march april may june july august september october november december am pm
		report data collection event events follow follows following respectively per once`)
)

// unknownEnglish is the first English word that neither a finding nor the
// vocabulary has.
func (v *verifier) unknownEnglish(text string, cited []factText) string {
	known := map[string]bool{}
	for _, f := range cited {
		for _, word := range englishWord.FindAllString(f.text, -1) {
			known[stem(word)] = true
		}
	}
	for _, t := range v.identity {
		known[stem(t.value)] = true
	}
	for _, word := range englishWord.FindAllString(wordPatternAnywhere.ReplaceAllStringFunc(extreme.ReplaceAllLiteralString(bounding.ReplaceAllLiteralString(text, " "), " "), onlyCompound), -1) {
		if lower := strings.ToLower(word); !openEnglish[lower] && !known[stem(word)] && len(word) > 1 {
			return word
		}
	}
	return ""
}

// onlyCompound keeps the words of an English compound, and no other name: those
// are checked as names.
func onlyCompound(name string) string {
	if strings.ContainsAny(name, "0123456789_./:@") {
		return " "
	}
	return strings.ReplaceAll(name, "-", " ")
}

func stem(word string) string {
	word = strings.ToLower(word)
	if short := suffixes.ReplaceAllString(word, ""); len(short) > 2 {
		return short
	}
	return word
}
