package report

import "fmt"

// phrase is a text in every language.
type phrase struct{ korean, english string }

// say formats both texts with the same arguments; a phrase among them stands for
// its text in the same language.
func say(korean, english string, args ...any) phrase {
	if len(args) == 0 {
		return phrase{korean: korean, english: english}
	}
	inKorean, inEnglish := make([]any, len(args)), make([]any, len(args))
	for i, arg := range args {
		inKorean[i], inEnglish[i] = arg, arg
		if p, ok := arg.(phrase); ok {
			inKorean[i], inEnglish[i] = p.korean, p.english
		}
	}
	return phrase{korean: fmt.Sprintf(korean, inKorean...), english: fmt.Sprintf(english, inEnglish...)}
}

// in is the text in a language, Korean unless English is asked for.
func (p phrase) in(lang Language) string {
	if lang == English {
		return p.english
	}
	return p.korean
}
