package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page and its style sheet
	"encoding/base64"
	"html/template"
)

//go:embed render_page.html
var pageTemplate string

//go:embed render_style.css
var pageStyle string

var htmlPage = template.Must(template.New("page").Funcs(template.FuncMap{
	"style":     func() template.CSS { return template.CSS(pageStyle) }, //nolint:gosec // the style sheet is ours
	"styleHash": styleHash,
	"add":       func(a, b int) int { return a + b },
	"sub":       func(a, b int) int { return a - b },
}).Parse(pageTemplate))

// styleHash lets the page's policy allow its one style sheet and no other.
func styleHash() string {
	sum := sha256.Sum256([]byte(pageStyle))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// html is the page as one file: no script, nothing from elsewhere.
func (p page) html() []byte {
	var b bytes.Buffer
	if err := htmlPage.Execute(&b, p); err != nil { // nothing in a page can fail to print
		panic(err)
	}
	return b.Bytes()
}
