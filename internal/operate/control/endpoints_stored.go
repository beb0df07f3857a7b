package control

import "github.com/pinwheel-run/pinwheel/events"

// Endpoints about what owners have stored: dead letters, keys and objects; and about what was changed.
var (
	DeadList = Endpoint[ListLetters, LetterList]{
		Name:    "dead.list",
		Doc:     "Lists dead letters.",
		Owner:   func(q *ListLetters) *string { return &q.Owner },
		Worker:  func(q *ListLetters) *string { return &q.Worker },
		Guarded: true,
		handle:  (*Server).DeadLetters,
	}
	DeadCounts = Endpoint[CountLetters, LetterCounts]{
		Name:    "dead.counts",
		Doc:     "Counts dead letters by worker, kind and reason. A process may have counted them some seconds ago.",
		Owner:   func(q *CountLetters) *string { return &q.Owner },
		Worker:  func(q *CountLetters) *string { return &q.Worker },
		Guarded: true,
		handle:  by(countsOf, (*letterCounts).answer),
	}
	DeadShow = Endpoint[LetterID, *events.LetterJSON]{
		Name:    "dead.show",
		Doc:     "Returns a dead letter, with its body if that fits the answer.",
		Owner:   func(q *LetterID) *string { return &q.by },
		Guarded: true,
		handle:  (*Server).DeadLetter,
	}
	DeadBody = Endpoint[LetterPart, LetterBody]{
		Name:    "dead.body",
		Doc:     "Returns a part of the body of a dead letter.",
		Owner:   func(q *LetterPart) *string { return &q.by },
		Guarded: true,
		handle:  (*Server).deadBody,
	}
	DeadImport = Endpoint[ImportLetters, ImportedLetters]{
		Name:    "dead.import",
		Doc:     "Stores dead letters of an export.",
		Owner:   func(q *ImportLetters) *string { return &q.Owner },
		Guarded: true,
		Audit:   true,
		Retry:   IfRefused,
		handle:  (*Server).importLetters,
	}
	DeadEdit = Endpoint[EditLetter, EditedLetter]{
		Name:    "dead.edit",
		Doc:     "Changes a dead letter, which gets a new ID.",
		Owner:   func(q *EditLetter) *string { return &q.by },
		Guarded: true,
		Audit:   true,
		handle:  (*Server).EditDeadLetter,
	}
	DeadReplay = Endpoint[Replay, Job]{
		Name:    "dead.replay",
		Doc:     "Starts a job that replays dead letters.",
		Owner:   func(q *Replay) *string { return &q.by },
		Worker:  func(q *Replay) *string { return &q.Worker },
		Guarded: true,
		Audit:   true,
		handle:  by(jobsOf, (*jobs).replay),
	}
	DeadReplays = Endpoint[ReplayFilter, ReplayList]{
		Name:    "dead.replays",
		Doc:     "Returns the results of replays.",
		Owner:   func(q *ReplayFilter) *string { return &q.Owner },
		Worker:  func(q *ReplayFilter) *string { return &q.Worker },
		Guarded: true,
		handle:  (*Server).Replays,
	}
	DeadPurge = Endpoint[Selection, Job]{
		Name:    "dead.purge",
		Doc:     "Starts a job that removes dead letters.",
		Owner:   func(q *Selection) *string { return &q.by },
		Worker:  func(q *Selection) *string { return &q.Worker },
		Guarded: true,
		Audit:   true,
		handle:  by(jobsOf, (*jobs).purge),
	}
	DeadJob = Endpoint[JobName, Job]{
		Name:    "dead.job",
		Doc:     "Returns the state of a job.",
		Owner:   func(q *JobName) *string { return &q.by },
		Guarded: true,
		handle:  by(jobsOf, (*jobs).get),
	}
	DeadCancel = Endpoint[JobName, Job]{
		Name:    "dead.cancel",
		Doc:     "Cancels a job.",
		Owner:   func(q *JobName) *string { return &q.by },
		Guarded: true,
		handle:  by(jobsOf, (*jobs).cancel),
	}
	DeadJobs = Endpoint[ListJobs, JobList]{
		Name:    "dead.jobs",
		Doc:     "Lists the jobs of a process.",
		Owner:   func(q *ListJobs) *string { return &q.by },
		Each:    true,
		Guarded: true,
		handle:  by(jobsOf, (*jobs).all),
	}
	KVList = Endpoint[ListKeys, KeyList]{
		Name:    "kv.list",
		Doc:     "Lists keys of a namespace.",
		Owner:   func(q *ListKeys) *string { return &q.Owner },
		Guarded: true,
		Retry:   IfUnanswered,
		handle:  by(dataOf, (*ownerData).listKeys),
	}
	KVGet = Endpoint[GetValue, StoredValue]{
		Name:    "kv.get",
		Doc:     "Returns a part of a value.",
		Owner:   func(q *GetValue) *string { return &q.Owner },
		Guarded: true,
		Retry:   IfUnanswered,
		handle:  by(dataOf, (*ownerData).getValue),
	}
	KVPut = Endpoint[PutValue, SizedValue]{
		Name:    "kv.put",
		Doc:     "Sets a value.",
		Owner:   func(q *PutValue) *string { return &q.Owner },
		Guarded: true,
		Audit:   true,
		Retry:   IfRefused,
		handle:  by(dataOf, (*ownerData).putValue),
	}
	KVRemove = Endpoint[OwnerKey, SizedValue]{
		Name:    "kv.rm",
		Doc:     "Removes a key.",
		Owner:   func(q *OwnerKey) *string { return &q.Owner },
		Guarded: true,
		Audit:   true,
		Retry:   IfRefused,
		handle:  by(dataOf, (*ownerData).removeKey),
	}
	ObjectsList = Endpoint[ListObjects, ObjectList]{
		Name:    "objects.list",
		Doc:     "Lists objects of a bucket.",
		Owner:   func(q *ListObjects) *string { return &q.Owner },
		Guarded: true,
		Retry:   IfUnanswered,
		handle:  by(dataOf, (*ownerData).listObjects),
	}
	ObjectsGet = Endpoint[GetObject, GotObject]{
		Name:    "objects.get",
		Doc:     "Returns an object, with a part of its data if that is asked for.",
		Owner:   func(q *GetObject) *string { return &q.Owner },
		Guarded: true,
		Retry:   IfUnanswered,
		handle:  by(dataOf, (*ownerData).getObject),
	}
	ObjectsPut = Endpoint[PutObject, SizedObject]{
		Name:    "objects.put",
		Doc:     "Stores an object.",
		Owner:   func(q *PutObject) *string { return &q.Owner },
		Guarded: true,
		Audit:   true,
		Retry:   IfRefused,
		handle:  by(dataOf, (*ownerData).putObject),
	}
	ObjectsRemove = Endpoint[OwnerObject, SizedObject]{
		Name:    "objects.rm",
		Doc:     "Removes an object.",
		Owner:   func(q *OwnerObject) *string { return &q.Owner },
		Guarded: true,
		Audit:   true,
		Retry:   IfRefused,
		handle:  by(dataOf, (*ownerData).removeObject),
	}
	AuditRecords = Endpoint[ListAudit, AuditList]{
		Name:    "audit.list",
		Doc:     "Lists what was changed, the oldest first.",
		Owner:   func(q *ListAudit) *string { return &q.Owner },
		Guarded: true,
		handle:  (*Server).listAudit,
	}
)

// storedEndpoints returns the rows of the table about what owners have stored, and about what was changed.
func storedEndpoints() []row {
	return []row{
		DeadList.row(),
		DeadCounts.row(),
		DeadShow.row(),
		DeadBody.row(),
		DeadImport.row(),
		DeadEdit.row(),
		DeadReplay.row(),
		DeadReplays.row(),
		DeadPurge.row(),
		DeadJob.row(),
		DeadCancel.row(),
		DeadJobs.row(),
		KVList.row(),
		KVGet.row(),
		KVPut.row(),
		KVRemove.row(),
		ObjectsList.row(),
		ObjectsGet.row(),
		ObjectsPut.row(),
		ObjectsRemove.row(),
		AuditRecords.row(),
		RunsList.row(),
		RunsShow.row(),
		EventSend.row(),
		UsageGet.row(),
	}
}
