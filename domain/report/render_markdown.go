package report

import (
	"regexp"
	"strings"
	"unicode"
)

// markdown is the page in GitHub-flavoured Markdown.
func (p page) markdown() []byte {
	var b strings.Builder
	b.WriteString("# " + escapeMarkdown(p.Title) + "\n\n> " + escapeMarkdown(p.Label) + "\n")
	for _, section := range p.Sections {
		b.WriteString("\n## " + escapeMarkdown(section.Heading) + "\n")
		for _, table := range section.Tables {
			writeTable(&b, table)
		}
		if section.Prose != "" {
			b.WriteString("\n" + escapeMarkdown(section.Prose) + "\n")
		}
		if len(section.Points) > 0 {
			b.WriteString("\n")
		}
		for _, point := range section.Points {
			b.WriteString("- " + escapeMarkdown(point) + "\n")
		}
	}
	b.WriteString("\n---\n\n" + escapeMarkdown(p.Label) + "\n")
	return []byte(b.String())
}

func writeTable(b *strings.Builder, table Table) {
	if len(table.Columns) == 0 {
		return
	}
	row := func(cells []string) {
		b.WriteString("|")
		for i := range table.Columns {
			cell := ""
			if i < len(cells) {
				cell = escapeInline(cells[i])
			}
			b.WriteString(" " + cell + " |")
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	row(table.Columns)
	b.WriteString(strings.Repeat("| --- ", len(table.Columns)) + "|\n")
	for _, cells := range table.Rows {
		row(cells)
	}
}

var (
	// markdownMarks mean something anywhere in a line; a tilde strikes out.
	markdownMarks = regexp.MustCompile("[\\\\`*\\[\\]<>&|~#{}]")
	// lineStart begins a list, a rule or a heading.
	lineStart = regexp.MustCompile(`^(\s*)(?:([-+=])|(\d+)([.)])(\s|$))`)
	// addresses become links by themselves.
	addresses = regexp.MustCompile(`(?i)(www)\.|(://)|@`)
)

// escapeMarkdown makes a text mean itself at the start of a line: one line, no
// markup, no link.
func escapeMarkdown(text string) string {
	return lineStart.ReplaceAllStringFunc(escapeInline(text), func(m string) string {
		mark := strings.IndexAny(m, "-+=.)")
		return m[:mark] + `\` + m[mark:]
	})
}

// escapeInline is escapeMarkdown for text that begins no line.
func escapeInline(text string) string {
	text = oneLine(text)
	text = markdownMarks.ReplaceAllString(text, `\$0`)
	text = escapeUnderscores(text)
	return addresses.ReplaceAllStringFunc(text, func(m string) string {
		if m[0] == 'w' || m[0] == 'W' {
			return m[:3] + `\.`
		}
		return `\` + m
	})
}

// escapeUnderscores escapes those that are not inside a word, where they would
// emphasise.
func escapeUnderscores(text string) string {
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }
	runes := []rune(text)
	var b strings.Builder
	for i, r := range runes {
		if r == '_' && (i == 0 || i == len(runes)-1 || !inWord(runes[i-1]) || !inWord(runes[i+1])) {
			b.WriteRune('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// oneLine turns whatever breaks or hides in a line into a space.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	return strings.TrimSpace(text)
}

var escaped = regexp.MustCompile(`\\([!-/:-@\[-` + "`" + `{-~])`)

// unescapeMarkdown is the text that escapeMarkdown was given.
func unescapeMarkdown(text string) string { return escaped.ReplaceAllString(text, "$1") }
