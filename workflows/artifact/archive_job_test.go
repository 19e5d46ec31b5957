package artifact

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"

	"millrace/workflows/historytest"
)

func TestTheArchiveJobIsRetriedAndReports(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(historytest.Silent)
	env := suite.NewTestWorkflowEnvironment()
	attempts := 0
	env.RegisterActivityWithOptions(func(_ context.Context, r SweepRequest) (SweepReport, error) {
		if attempts++; attempts < 3 {
			return SweepReport{}, errors.New("throttled")
		}
		return SweepReport{DryRun: r.DryRun, Archived: []string{"artifact/fix/v1"}}, nil
	}, activity.RegisterOptions{Name: SweepActivity})
	env.ExecuteWorkflow(ArtifactArchive, SweepRequest{DryRun: true})
	require.NoError(t, env.GetWorkflowError())
	var report SweepReport
	require.NoError(t, env.GetWorkflowResult(&report))
	require.Equal(t, SweepReport{DryRun: true, Archived: []string{"artifact/fix/v1"}}, report)
}
