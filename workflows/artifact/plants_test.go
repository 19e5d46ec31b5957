package artifact

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/temporal"

	"millrace/domain/artifact"
	"millrace/domain/exact"
)

// plant is a factory whose device does jobs as the test says.
type plant struct {
	// score is the risk score, sick what it is after a primary file.
	score, sick string
	// fails has the device's jobs with the primary file fail, silent leaves them
	// without an answer, refused has them never sent.
	fails, silent, refused bool
	// had has the factory know the job from before a reset.
	had bool
	// stale has no news after the job.
	stale bool
	// quiet is when the factory was heard last, where it fell silent.
	quiet time.Time
	// brokenUndos is how many rollbacks fail, quietUndos how many get no answer.
	brokenUndos, quietUndos int
	jobEnded                time.Time
}

// plants are factories with what was done to them.
type plants struct {
	mu     sync.Mutex
	byID   map[string]*plant
	now    func() time.Time
	answer func(after time.Duration, r JobResult)
	// sent are the jobs in order, as role and factory.
	sent []string
	runs map[string]JobRequest
	// recorded are the answers of devices as the store has them.
	recorded map[string]JobResult
	// owners are those of locks; held has every lock that was taken.
	owners   map[string]string
	held     map[string]bool
	unlocked []string
	locks    int
	// broken has reading the states fail from some time on.
	broken func() bool
	// under counts the jobs that were sent and not answered, most how many at once.
	under, most int
}

func newPlants(now func() time.Time, answer func(time.Duration, JobResult), ids ...string) *plants {
	p := &plants{byID: map[string]*plant{}, now: now, answer: answer, runs: map[string]JobRequest{}, recorded: map[string]JobResult{}, owners: map[string]string{}, held: map[string]bool{}}
	for _, id := range ids {
		p.byID[id] = &plant{score: "90"}
	}
	return p
}

func (p *plants) health(r HealthRequest) (HealthResult, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken != nil && p.broken() {
		return HealthResult{}, temporal.NewNonRetryableApplicationError("no such table", ErrConflict, nil)
	}
	var result HealthResult
	for _, id := range r.FactoryIDs {
		plant := p.byID[id]
		h := artifact.Health{FactoryAt: p.now(), InfraAt: p.now()}
		if plant.score != "" {
			h.Score = new(exact.MustParse(plant.score))
		}
		if plant.stale && !plant.jobEnded.IsZero() {
			h.FactoryAt = plant.jobEnded
		}
		if !plant.quiet.IsZero() && h.FactoryAt.After(plant.quiet) {
			h.FactoryAt = plant.quiet
		}
		result.Factories = append(result.Factories, h)
	}
	return result, nil
}

func (p *plants) lock(r LockRequest) LockResult {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.locks++
	for _, id := range r.FactoryIDs {
		if owner := p.owners[id]; owner != "" && owner != r.Owner {
			return LockResult{FactoryID: id, Owner: owner, Until: p.now().Add(time.Hour)}
		}
		p.owners[id], p.held[id] = r.Owner, true
	}
	return LockResult{}
}

func (p *plants) unlock(r UnlockRequest) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range r.FactoryIDs {
		if p.owners[id] == r.Owner {
			delete(p.owners, id)
			p.unlocked = append(p.unlocked, id)
		}
	}
	return nil
}

// own says who has the lock of a factory.
func (p *plants) own(id, owner string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owners[id] = owner
}

func (p *plants) send(r JobRequest) (JobSent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := artifact.CheckRunID(r.RunID); err != nil {
		return JobSent{}, err
	}
	plant := p.byID[r.FactoryID]
	if plant.had && r.Role == artifact.Primary {
		return JobSent{}, temporal.NewNonRetryableApplicationError("the factory had this job before, as run x", ErrSentBefore, nil)
	}
	if plant.refused && r.Role == artifact.Primary {
		return JobSent{}, temporal.NewNonRetryableApplicationError("the broker refuses the topic", ErrForbidden, nil)
	}
	if _, again := p.runs[r.RunID]; again {
		return JobSent{}, fmt.Errorf("run %s twice", r.RunID)
	}
	p.runs[r.RunID] = r
	p.sent = append(p.sent, string(r.Role)+" "+r.FactoryID)
	p.under++
	p.most = max(p.most, p.under)
	result := JobResult{RunID: r.RunID, FactoryID: r.FactoryID, Status: RunSucceeded, FinishedAt: p.now().Add(time.Second)}
	if plant.obeys(r.Role, &result) {
		p.recorded[r.RunID] = result
		p.answer(2*time.Second, result)
	}
	return JobSent{SentAt: p.now()}, nil
}

// obeys has the device do a job, and tells whether it answers.
func (p *plant) obeys(role artifact.Role, result *JobResult) bool {
	p.jobEnded = result.FinishedAt
	if role == artifact.Rollback {
		switch {
		case p.quietUndos > 0:
			p.quietUndos--
			return false
		case p.brokenUndos > 0:
			p.brokenUndos--
			result.Status, result.ExitCode, result.Detail = RunFailed, 1, "exit status 1"
		}
		return true
	}
	if p.sick != "" {
		p.score = p.sick
	}
	if p.fails {
		result.Status, result.ExitCode, result.Detail = RunFailed, 3, "exit status 3"
	}
	return !p.silent
}

// settle is what the store knows of a job without an answer.
func (p *plants) settle(r SettleRequest) SettleResult {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, began := p.runs[r.RunID]; !began {
		return SettleResult{}
	}
	return SettleResult{Began: true, Result: RunResult{Status: r.Status, ExitCode: -1, Detail: r.Detail}}
}

// read is how a job stands in the store.
func (p *plants) read(r RunRef) RunEnd {
	p.mu.Lock()
	defer p.mu.Unlock()
	result, ended := p.recorded[r.RunID]
	return RunEnd{Ended: ended, Result: RunResult{Status: result.Status, ExitCode: result.ExitCode, Detail: result.Detail}, FinishedAt: result.FinishedAt}
}

func (p *plants) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.under--
}

func (p *plants) jobs() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.sent...)
}

// jobRequest is a request for a job of these factories.
func jobRequest(args artifact.JobArgs, change ...func(*artifact.Request)) artifact.Request {
	body, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return request(append([]func(*artifact.Request){func(r *artifact.Request) {
		r.Spec.Kind, r.Spec.Args = artifact.IoTJob, body
		r.Spec.Limits.Timeout = artifact.Duration(5 * time.Minute)
	}}, change...)...)
}

func inThree(ids ...string) artifact.JobArgs {
	return artifact.JobArgs{
		Targets: ids, Waves: []artifact.Wave{1, 2, artifact.Rest}, Pause: artifact.Duration(10 * time.Minute),
		Gate: artifact.Gate{MinScore: exact.FromInt(50), MaxDrop: exact.FromInt(10), Within: artifact.Duration(5 * time.Minute)},
	}
}
