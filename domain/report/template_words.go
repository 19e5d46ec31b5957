package report

// phrases are the words that code itself puts into a report.
type phrases struct {
	byModel, byStandIn, byTemplate string
	basis, testbed                 string
	keyFigures, verification       string
	verdict                        string
	verdicts                       map[Verdict]string
	figure, value                  string
	nothing                        string
	gap, noGap, hasData, noData    string
	lowest, highest, target, date  string
	empty                          string
}

var words = map[Language]phrases{
	Korean: {
		byModel:    "LLM 초안 · 운영자 검토 필요. 문장은 모델 %s이(가) 썼고, 수치와 표는 프로그램이 계산하고 검사했습니다.",
		byStandIn:  "로컬 대역 모델의 초안 · 운영자 검토 필요. 문장은 실제 LLM이 아니라 로컬 스택의 대역 %s이(가) 옮겨 썼고, 수치와 표는 프로그램이 계산하고 검사했습니다.",
		byTemplate: "템플릿 리포트 · 모델 없음. 문장과 수치를 모두 프로그램이 썼습니다.",
		basis:      "기준: S3 processed 데이터.",
		testbed:    "테스트베드 데이터이며 실제 장애나 사고를 뜻하지 않습니다.",
		keyFigures: "핵심 지표 표", verification: "검증 기준 수치",
		verdict:  "종합 판정",
		verdicts: map[Verdict]string{Normal: "정상", Warning: "주의", Danger: "위험"},
		figure:   "항목", value: "값", nothing: "해당 사항이 없습니다.",
		gap: "데이터 공백", noGap: "공백 없음", hasData: "데이터 있음", noData: "데이터가 없습니다.", lowest: "최저", highest: "최고",
		target: "대상", date: "날짜", empty: "이 날은 수집된 데이터가 없습니다.",
	},
	English: {
		byModel:    "LLM draft, operator review required. The sentences are by the model %s; the figures and tables were computed and checked by code.",
		byStandIn:  "Draft of the local stand-in, operator review required. No LLM wrote the sentences: the local stack's stand-in %s did; the figures and tables were computed and checked by code.",
		byTemplate: "Template report, no model. Code wrote all sentences and figures.",
		basis:      "Basis: processed data in S3.",
		testbed:    "Testbed data, which mean no real incident.",
		keyFigures: "Key figures", verification: "Figures for verification",
		verdict:  "Verdict",
		verdicts: map[Verdict]string{Normal: "normal", Warning: "warning", Danger: "danger"},
		figure:   "Figure", value: "Value", nothing: "Nothing to report.",
		gap: "gap in the data", noGap: "no gap", hasData: "data", noData: "No data.", lowest: "lowest", highest: "highest",
		target: "Target", date: "Date", empty: "No data were collected on this day.",
	},
}
