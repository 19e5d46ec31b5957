// Package millrace_test checks rules of the whole repository.
package millrace_test

import (
	"bufio"
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// layers says which of our folders a folder may import; programs may import
// everything.
var layers = map[string][]string{
	"domain":     {"domain"},
	"storage":    {"domain", "storage"},
	"workflows":  {"domain", "workflows"},
	"activities": {"domain", "storage", "platform", "workflows", "activities"},
	"platform":   {"domain", "platform"},
}

var programs = map[string]bool{"worker": true, "starter": true, "gateway": true, "edge": true, "deploy": true, "web": true, "": true}

// sideEffects are imports that rules and workflows must not have.
var sideEffects = map[string][]string{
	"domain":    {"net/http", "os", "os/exec", "go.temporal.io/", "github.com/aws/", "database/sql"},
	"workflows": {"net/http", "os", "os/exec", "github.com/aws/", "go.temporal.io/sdk/client", "go.temporal.io/sdk/worker"},
}

// forTests are packages that only tests may import; they may have side effects.
var forTests = map[string]bool{
	"millrace/domain/report/reporttest": true, "millrace/edge/edgetest": true, "millrace/storage/storagetest": true, "millrace/workflows/historytest": true,
}

func TestImportsOnlyPointDownwards(t *testing.T) {
	for _, p := range imports(t) {
		from, ours := strings.CutPrefix(p.path, "millrace/")
		if !ours {
			continue
		}
		layer, _, _ := strings.Cut(from, "/")
		if programs[layer] {
			continue
		}
		allowed, known := layers[layer]
		require.True(t, known, "folder %s has no place in the architecture", layer)
		for _, imported := range p.imports {
			if target, ours := strings.CutPrefix(imported, "millrace/"); ours {
				to, _, _ := strings.Cut(target, "/")
				require.Contains(t, allowed, to, "%s may not import %s", p.path, imported)
			}
			if forTests[p.path] {
				continue
			}
			for _, forbidden := range sideEffects[layer] {
				require.False(t, imported == forbidden || (strings.HasSuffix(forbidden, "/") && strings.HasPrefix(imported, forbidden)),
					"%s may not import %s", p.path, imported)
			}
		}
	}
}

func TestOnlyTestsImportWhatIsForTests(t *testing.T) {
	for _, p := range imports(t) {
		for _, imported := range p.imports {
			require.False(t, forTests[imported] && !forTests[p.path], "%s may not import %s", p.path, imported)
		}
	}
}

func TestActivitiesImportOnlyTheirOwnContract(t *testing.T) {
	for _, p := range imports(t) {
		capability, ok := strings.CutPrefix(p.path, "millrace/activities/")
		if !ok {
			continue
		}
		for _, imported := range p.imports {
			contract, ok := strings.CutPrefix(imported, "millrace/workflows/")
			if ok && contract != "names" {
				require.Equal(t, strings.Split(capability, "/")[0], contract, "%s may not import %s", p.path, imported)
			}
		}
	}
}

type goPackage struct {
	path    string
	imports []string
}

func imports(t *testing.T) []goPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
	require.NoError(t, err)
	var packages []goPackage
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		packages = append(packages, goPackage{path: fields[0], imports: fields[1:]})
	}
	require.NotEmpty(t, packages)
	return packages
}
