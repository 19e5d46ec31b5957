package report

import (
	"regexp"
	"slices"
	"strings"
)

// judgement is a kind of statement that only code may make: a sentence that has
// one of its words must cite a finding that supports it.
type judgement struct {
	rule string
	said *regexp.Regexp
	// support is what a cited finding must have; nil is the same as said.
	support *regexp.Regexp
	// zero also takes a finding that counts 0 for support.
	zero bool
	// whole looks at words that other judgements pass over, such as not normal.
	whole bool
}

func (j judgement) supportedBy(findings []factText) bool {
	support := j.support
	if support == nil {
		support = j.said
	}
	return slices.ContainsFunc(findings, func(f factText) bool {
		return support.MatchString(f.plain) || j.whole && support.MatchString(f.text) || j.zero && f.countsZero()
	})
}

// factText is a finding prepared for checks.
type factText struct {
	text string
	// plain is the text without names and without words that only look like
	// judgements; names are those that were left out.
	plain  string
	names  []string
	tokens []token
}

func newFactText(lang Language, text string) factText {
	names := machineName.FindAllString(text, -1)
	return factText{text: text, plain: plainText(lang, text, names), names: names, tokens: tokensOf(lang, text)}
}

// machineName is what machines were named: anybody may have chosen its words, and
// none of them supports a judgement.
var machineName = regexp.MustCompile(`[\pL\pN.-]*[/_][^\s()'",]*`)

// plainText is a text without the names given and without neutral words.
func plainText(lang Language, text string, names []string) string {
	for _, name := range names {
		text = strings.ReplaceAll(text, name, " ")
	}
	return neutral[lang].ReplaceAllLiteralString(text, " ")
}

var aboutScore = regexp.MustCompile(`(?i)점수|score`)

// countsZero tells whether a finding counts nothing: 0 samples or minutes, but not
// a score of 0.
func (f factText) countsZero() bool {
	scored := aboutScore.MatchString(f.text)
	return slices.ContainsFunc(f.tokens, func(t token) bool {
		return t.kind == numberToken && t.value == "0" && t.role == "" && t.unit != "point" && (t.unit != "" || !scored)
	})
}

// neutral are words that hold a word of a judgement without being one: names of
// figures, what was not so, and what the score's direction means.
var neutral = map[Language]*regexp.Regexp{
	Korean: regexp.MustCompile(`위험\s?(?:점수|도|지수)|비정상|불안정|안전\s?점수|이상\s?(?:음|소음|소리)|주의\s?사항|` +
		`(?:정상|안전|양호|안정)(?:이|은|하지|적이지)?\s?(?:아니|아닌|않|못)\S*|(?i:not\s?ready)|(?:가까울|높을)수록\s?(?:더\s?)?안전\S*|낮을수록\s?(?:더\s?)?위험\S*`),
	English: regexp.MustCompile(`(?i)\brisk scores?\b|\babnormal\w*|\bunhealthy\b|\bunstable\b|\bunsafe\b|` +
		`\bnot (?:normal|safe|healthy|stable|good|ready)\b|\b100 (?:is|being) (?:the )?safest\b|\b(?:higher|closer to 100) is safer\b|\blower is (?:worse|more dangerous)\b`),
}

var judgements = map[Language][]judgement{
	Korean: {
		{rule: "direction", said: regexp.MustCompile(`상승|올랐|올라|오름|증가|늘었|늘어|높아졌|높아지|급등|급증`), support: regexp.MustCompile(`상승|올랐|올라|증가|늘었|높아|급등|급증|최고|최대`)},
		{rule: "direction", said: regexp.MustCompile(`하락|떨어|감소|줄었|줄어|낮아졌|낮아지|내려갔|급락|급감`), support: regexp.MustCompile(`하락|떨어|감소|줄었|낮아|급락|급감|최저|최소`)},
		{rule: "direction", said: regexp.MustCompile(`개선|회복|호전|나아졌|나아지|향상|좋아졌|좋아지`)},
		{rule: "direction", said: regexp.MustCompile(`악화|저하|나빠졌|나빠지|심해졌`), support: regexp.MustCompile(`악화|저하|나빠|심해|하락|위험|주의|경고|최저|미준비|critical|danger|warning`)},
		{rule: "judgement", said: regexp.MustCompile(`정상|안전|양호|안정|원활|순조|무난|무사|괜찮|완벽|우수|깨끗|문제(?:가|는|점이|점은)?\s?없|(?i:\b(?:normal|safe|healthy|stable|good|ok|okay|ready)\b)`)},
		{rule: "judgement", said: regexp.MustCompile(`주의|경고|(?i:\bwarnings?\b)`), support: regexp.MustCompile(`주의|경고|(?i:warning)`)},
		{rule: "judgement", said: regexp.MustCompile(`위험|심각|치명|긴급|위급|(?i:\b(?:danger|critical|severe)\b)`), support: regexp.MustCompile(`위험|심각|치명|긴급|(?i:danger|critical)`)},
		{rule: "judgement", whole: true, said: regexp.MustCompile(`(?i:not\s?ready)|미준비|비정상|불안정|(?:정상|안정|안전|양호)(?:이|은|하지|적이지)?\s?(?:아니|아닌|않|못)`), support: regexp.MustCompile(`(?i:not\s?ready)|미준비|준비되지|비정상|불안정|(?:정상|안정|안전|양호)(?:이|은|하지|적이지)?\s?(?:아니|아닌|않|못)|주의|위험|경고|미준비|critical|danger|warning`)},
		{rule: "absence", said: regexp.MustCompile(`없(?:었|습|다|음|이|는|고|으며)|전무|미발생|(?:발생|관측|확인|감지|보고)(?:하지|되지)\s?(?:는\s?)?않`), zero: true},
	},
	English: {
		{rule: "direction", said: regexp.MustCompile(`(?i)\b(?:rose|rising|rises?|risen|increas\w*|climb\w*|grew|growth|higher|surg\w*)\b`), support: regexp.MustCompile(`(?i)\b(?:rose|rising|rises?|risen|increas\w*|climb\w*|grew|higher|highest|maximum|max|peak\w*)\b`)},
		{rule: "direction", said: regexp.MustCompile(`(?i)\b(?:fell|fall(?:s|ing|en)?|drop\w*|decreas\w*|declin\w*|lower(?:ed)?|sank|reduc\w*)\b`), support: regexp.MustCompile(`(?i)\b(?:fell|fall(?:s|ing|en)?|drop\w*|decreas\w*|declin\w*|lower(?:ed)?|lowest|minimum|min)\b`)},
		{rule: "direction", said: regexp.MustCompile(`(?i)\b(?:improv\w*|recover\w*|better|enhanc\w*)\b`)},
		{rule: "direction", said: regexp.MustCompile(`(?i)\b(?:worse\w*|degrad\w*|deteriorat\w*)\b`), support: regexp.MustCompile(`(?i)\b(?:worse\w*|degrad\w*|deteriorat\w*|danger\w*|warnings?|critical|lowest|minimum|not ready)\b`)},
		{rule: "judgement", said: regexp.MustCompile(`(?i)\b(?:normal(?:ly)?|safe(?:ly|r|st)?|healthy|stable|good|fine|okay|excellent|perfect(?:ly)?|flawless(?:ly)?|calm|ready|smooth(?:ly)?|no (?:problems?|issues?))\b`)},
		{rule: "judgement", said: regexp.MustCompile(`(?i)\bwarnings?\b`)},
		{rule: "judgement", said: regexp.MustCompile(`(?i)\b(?:danger(?:ous)?|critical(?:ly)?|severe(?:ly)?|emergenc\w*)\b`), support: regexp.MustCompile(`(?i)\b(?:danger(?:ous)?|critical(?:ly)?|severe(?:ly)?|emergenc\w*)\b`)},
		{rule: "judgement", whole: true, said: regexp.MustCompile(`(?i)\babnormal\w*|\bunhealthy\b|\bunstable\b|\bunsafe\b|\bnot (?:normal|safe|healthy|stable|good|ready)\b`), support: regexp.MustCompile(`(?i)\babnormal\w*|\bunhealthy\b|\bunstable\b|\bunsafe\b|\bnot (?:normal|safe|healthy|stable|good|ready)\b|\bdanger\w*|\bwarnings?\b|\bcritical\b`)},
		{rule: "absence", said: regexp.MustCompile(`(?i)\b(?:no|none|nothing|never|without|(?:was|were|did|has|have|had) not|(?:was|were|did|has|have|had)n't)\b`), zero: true},
	},
}

// inverted are statements that turn the score around: 100 is safest.
var inverted = map[Language][]*regexp.Regexp{
	Korean: {
		regexp.MustCompile(`(?i)(?:점수|score)(?:[^,.;]|\.\d){0,24}(?:낮|하락|떨어|감소)(?:[^,.;]|\.\d){0,24}(?:안전|개선|양호|호전|정상|좋)`),
		regexp.MustCompile(`(?i)(?:점수|score)(?:[^,.;]|\.\d){0,24}(?:높|상승|올랐|올라|증가)(?:[^,.;]|\.\d){0,24}(?:위험|악화|심각|나쁘|나빠)`),
		regexp.MustCompile(`(?i)(?:개선|호전|회복)(?:[^,.;]|\.\d){0,24}(?:점수|score)(?:[^,.;]|\.\d){0,24}(?:낮|하락|떨어|감소)`),
		regexp.MustCompile(`(?i)(?:악화|저하)(?:[^,.;]|\.\d){0,24}(?:점수|score)(?:[^,.;]|\.\d){0,24}(?:높|상승|올랐|올라|증가)`),
		regexp.MustCompile(`(?i)낮은\s?(?:risk\s?)?(?:점수|score)(?:[^,.;]|\.\d){0,24}(?:안전|개선|양호|호전|정상|좋)`),
		regexp.MustCompile(`(?i)높은\s?(?:risk\s?)?(?:점수|score)(?:[^,.;]|\.\d){0,24}(?:위험|악화|심각|나쁘|나빠)`),
		regexp.MustCompile(`(?i)0(?:[^,.;]|\.\d){0,12}(?:가장|제일)\s?안전|100(?:[^,.;]|\.\d){0,12}(?:가장|제일)\s?위험`),
	},
	English: {
		regexp.MustCompile(`(?i)\bscores?\b(?:[^,.;]|\.\d){0,40}\b(?:lower|fell|dropped|declined|decreased)\b(?:[^,.;]|\.\d){0,40}\b(?:safer?|improv\w*|better|good|healthy)\b`),
		regexp.MustCompile(`(?i)\bscores?\b(?:[^,.;]|\.\d){0,40}\b(?:higher|rose|climbed|increased)\b(?:[^,.;]|\.\d){0,40}\b(?:danger\w*|worse\w*|degrad\w*|unsafe|riskier)\b`),
		regexp.MustCompile(`(?i)\b(?:improv\w*|better)\b(?:[^,.;]|\.\d){0,40}\bscores?\b(?:[^,.;]|\.\d){0,40}\b(?:lower|fell|dropped|declined)\b`),
		regexp.MustCompile(`(?i)\b(?:worse\w*|degrad\w*)\b(?:[^,.;]|\.\d){0,40}\bscores?\b(?:[^,.;]|\.\d){0,40}\b(?:higher|rose|climbed|increased)\b`),
		regexp.MustCompile(`(?i)\blow(?:er|est)? (?:risk )?scores?\b(?:[^,.;]|\.\d){0,40}\b(?:safer?|improv\w*|better|good|healthy)\b`),
		regexp.MustCompile(`(?i)\bhigh(?:er|est)? (?:risk )?scores?\b(?:[^,.;]|\.\d){0,40}\b(?:danger\w*|worse\w*|degrad\w*|unsafe|riskier)\b`),
		regexp.MustCompile(`(?i)\b0\b(?:[^,.;]|\.\d){0,20}\bsafest\b|\b100\b(?:[^,.;]|\.\d){0,20}\bmost dangerous\b`),
	},
}

// certain is wording that states a guess as knowledge.
var certain = map[Language]*regexp.Regexp{
	Korean:  regexp.MustCompile(`확실(?:히|하다|합니다|했|한\s)|확신|틀림없|분명(?:히|하다|합니다|한\s)|명백|의심의\s?여지|보장(?:됩|한|합|된)|절대(?:로|적으로)?\s|원인은\s[^.]{1,60}(?:이다|입니다|였다|였습니다|이었)|때문(?:이다|입니다|에\s발생)`),
	English: regexp.MustCompile(`(?i)\b(?:certainly|definitely|undoubtedly|unquestionably|obviously|clearly|surely|guaranteed?s?|without (?:a )?doubt|no doubt|(?:was|were|is|are) caused by|root cause (?:is|was)|proves?|proven)\b`),
}

// incidents are words that call a testbed's data real; denied says of the incident
// itself that it was none.
var (
	incidents = map[Language]*regexp.Regexp{
		Korean:  regexp.MustCompile(`실제\s?(?:장애|사고|사건|재해|화재|피해)|(?:장애|사고|재해|화재)(?:가|는|이|은)?\s?(?:발생|일어)|운영\s?장애|인명|현장\s?(?:사고|피해)`),
		English: regexp.MustCompile(`(?i)\b(?:real|actual|production)\s(?:incidents?|accidents?|outages?|emergenc\w+|fires?)\b|\b(?:incident|accident|outage|fire)s?\s(?:occurred|happened|took place|broke out)\b|\bcasualt\w+`),
	}
	denied = map[Language]*regexp.Regexp{
		Korean:  regexp.MustCompile(`실제\s?(?:장애|사고|사건|재해|화재|피해)(?:나\s?(?:장애|사고|재해))?(?:가|는|이|은|를|을|로)?\s?(?:아니|아닌|아닙|뜻하지\s?않|의미하지\s?않|쓰지\s?않)`),
		English: regexp.MustCompile(`(?i)\b(?:not|never|no)\b(?:\s(?:a|an|the|any))?\s(?:real|actual|production)\s(?:incidents?|accidents?|outages?|emergenc\w+|fires?)\b`),
	}
)

// spelled are numbers written as words, which would escape the check of numbers.
var spelled = map[Language]*regexp.Regexp{
	Korean: regexp.MustCompile(`(?:^|[\s("'])(?:한|두|세|네|다섯|여섯|일곱|여덟|아홉|열|열한|열두|스물|스무|서른|마흔|쉰|수십|수백|수천|몇십|삼|육|칠|팔|[이삼사오육칠팔구]?십[일이삼사오육칠팔구]?|백|천)\s?(?:건|번|회|분간|분\s|초간|시간|개의|개\s|대의|대가|차례|곳|배(?:로|나)?\s|점\s|도\s|퍼센트)|절반|과반|두\s?배|세\s?배|갑절|전부의\s?반`),
	English: regexp.MustCompile(`(?i)\b(?:zero|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|` +
		`hundreds?|thousands?|millions?|dozens?|half|halved|twice|thrice|doubled?|tripled?|quarter|couple|one (?:node|event|gap|hour|minute|second|restart|sample|workload|time|warning|alert|day|incident|sensor|factory))\b`),
}

// markup is what only code may write.
var markup = regexp.MustCompile("[|<>`*#\\\\{}\\n\\r\\t]|~~|!\\[|\\]\\(|(?i:https?:|ftp:|www\\.|mailto:|javascript:|data:[a-z]+/)|&[a-zA-Z#][a-zA-Z0-9]*;|^\\s*(?:[-+•·▪●○■]\\s|\\d+[.)]\\s)")

// vocabulary are Latin words that need no fact.
var vocabulary = newVocabulary(`risk score ai llm s3 processed raw kst utc iot aws pod pods node nodes workload workloads snapshot pipeline cpu gpu memory disk
	k3s k8s kubernetes eks ecs alb rds redis argocd argo cd sync http api json latest history
	and/or edge cloud infra cloud-infra fire fall bend score/ai restart gap min max avg vs slack temporal dashboard id ids`)

func newVocabulary(words string) map[string]bool {
	known := map[string]bool{}
	for _, word := range regexp.MustCompile(`\S+`).FindAllString(words, -1) {
		known[word] = true
	}
	return known
}

// compounds are English words with a hyphen that are no names.
var compounds = regexp.MustCompile(`(?i)^(?:(?:non|re|pre|post|sub|mid|multi|over|under|self|cross|well|short|long|real|so|follow|up|day|hour|week|end|day|half|low|high|cut|sign|root)-[a-z]+(?:-[a-z]+)*|read-only|day-to-day|point-in-time|lowest-ever|cloud-side|edge-side|operator-reviewed|rule-based|time-based)$`)
