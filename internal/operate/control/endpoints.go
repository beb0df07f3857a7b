package control

import "slices"

// Endpoints about the fleet, its workers, owners and secrets.
var (
	GetFlow = Endpoint[AskFlow, Flow]{
		Name:   "flow",
		Doc:    "Returns what runs in a process, and what has happened there since it began.",
		Each:   true,
		handle: (*Server).flow,
	}
	GetStats = Endpoint[None, FleetStats]{
		Name:   "stats",
		Doc:    "Returns what is stored for the whole fleet.",
		handle: (*Server).Stats,
	}
	GetSettings = Endpoint[None, Settings]{
		Name:    "settings",
		Doc:     "Returns the settings of the fleet that bound workers.",
		Process: true,
		handle:  (*Server).settings,
	}
	GetStorage = Endpoint[AskStorage, Storage]{
		Name:    "storage",
		Doc:     "Returns why JetStream does not acknowledge events, as a process knows it.",
		Owner:   func(q *AskStorage) *string { return &q.by },
		Process: true,
		handle:  (*Server).storage,
	}
	WorkersList = Endpoint[ListWorkers, WorkerList]{
		Name:   "workers.list",
		Doc:    "Lists workers by their active versions.",
		Owner:  func(q *ListWorkers) *string { return &q.Owner },
		handle: (*Server).Workers,
	}
	WorkersFind = Endpoint[FindWorkers, FoundWorkers]{
		Name:    "workers.find",
		Doc:     "Lists workers that the process which answers runs.",
		Owner:   func(q *FindWorkers) *string { return &q.Owner },
		Process: true,
		handle:  (*Server).findWorkers,
	}
	FlowWorkers = Endpoint[AskWorkersFlow, WorkersFlow]{
		Name:   "workers.flow",
		Doc:    "Returns what the workers of an owner have done in a process.",
		Owner:  func(q *AskWorkersFlow) *string { return &q.Owner },
		Worker: func(q *AskWorkersFlow) *string { return &q.Worker },
		Each:   true,
		handle: (*Server).workersFlow,
	}
	workersVersions = Endpoint[WorkerName, WorkerVersions]{
		Name:   "workers.versions",
		Doc:    "Does what versions.list does.",
		Worker: func(q *WorkerName) *string { return &q.Worker },
		handle: (*Server).WorkerVersions,
	}
	WorkersActive = Endpoint[WorkerName, ActiveVersion]{
		Name:   "workers.active",
		Doc:    "Returns which version of a worker a process runs.",
		Worker: func(q *WorkerName) *string { return &q.Worker },
		Each:   true,
		handle: (*Server).activeVersion,
	}
	WorkersRemove = Endpoint[RemoveWorker, RemovedWorker]{
		Name:    "workers.rm",
		Doc:     "Removes a worker with all its versions.",
		Worker:  func(q *RemoveWorker) *string { return &q.Worker },
		Guarded: true,
		Audit:   true,
		handle:  (*Server).removeWorker,
	}
	WorkersReset = Endpoint[WorkerName, ResetWorker]{
		Name:    "workers.reset",
		Doc:     "Ends the contexts of a worker in all processes.",
		Worker:  func(q *WorkerName) *string { return &q.Worker },
		Guarded: true,
		Audit:   true,
		Process: true,
		handle:  (*Server).resetWorker,
	}
	VersionsList = Endpoint[WorkerName, WorkerVersions]{
		Name:   "versions.list",
		Doc:    "Lists the versions of a worker.",
		Worker: func(q *WorkerName) *string { return &q.Worker },
		handle: (*Server).WorkerVersions,
	}
	VersionsShow = Endpoint[ShowVersion, ShownVersion]{
		Name:    "versions.show",
		Doc:     "Describes a version of a worker, with a part of its code.",
		Worker:  func(q *ShowVersion) *string { return &q.Worker },
		Guarded: true,
		handle:  (*Server).showVersion,
	}
	VersionsSource = Endpoint[ShowSource, ShownSource]{
		Name:    "versions.source",
		Doc:     "Returns a part of a file of the author, as a version has it.",
		Worker:  func(q *ShowSource) *string { return &q.Worker },
		Guarded: true,
		handle:  (*Server).showSource,
	}
	VersionsPreview = Endpoint[PreviewVersion, PreviewLink]{
		Name:    "versions.preview",
		Doc:     "Signs a link that shows a version.",
		Worker:  func(q *PreviewVersion) *string { return &q.Worker },
		Guarded: true,
		Audit:   true,
		Process: true,
		handle:  (*Server).previewVersion,
	}
	VersionsDeploy = Endpoint[DeployVersion, DeployedVersion]{
		Name:    "versions.deploy",
		Doc:     "Deploys a bundle that is stored in parts. What was done already is not done again.",
		Worker:  func(q *DeployVersion) *string { return &q.Worker },
		Guarded: true,
		Audit:   true,
		Retry:   IfRefused,
		handle:  by(deploysOf, (*deploys).deploy),
	}
	VersionsOutcomes = Endpoint[WorkerName, WorkerOutcomes]{
		Name:   "versions.outcomes",
		Doc:    "Returns how the runs of a worker's split have ended in a process.",
		Each:   true,
		handle: (*Server).outcomes,
	}
	FilesMissing = Endpoint[MissingFiles, MissingHashes]{
		Name:    "files.missing",
		Doc:     "Returns which files of an owner are not stored.",
		Owner:   func(q *MissingFiles) *string { return &q.Owner },
		Guarded: true,
		Retry:   IfUnanswered,
		handle:  by(filesOf, (*fileStore).missing),
	}
	FilesStore = Endpoint[StoreFiles, StoredFiles]{
		Name:    "files.store",
		Doc:     "Stores files of an owner.",
		Owner:   func(q *StoreFiles) *string { return &q.Owner },
		Guarded: true,
		Retry:   IfRefused,
		handle:  by(filesOf, (*fileStore).store),
	}
	DeploymentsList = Endpoint[WorkerName, WorkerDeployments]{
		Name:   "deployments.list",
		Doc:    "Lists the deployments of a worker.",
		Worker: func(q *WorkerName) *string { return &q.Worker },
		handle: (*Server).Deployments,
	}
	DeploymentsPromote = Endpoint[Promote, Redeployed]{
		Name:    "deployments.promote",
		Doc:     "Gives a version a share of the events, or all of them.",
		Worker:  func(q *Promote) *string { return &q.Worker },
		Guarded: true,
		Audit:   true,
		handle:  (*Server).Promote,
	}
	DeploymentsRollback = Endpoint[Rollback, Redeployed]{
		Name:    "deployments.rollback",
		Doc:     "Gives all events to an older version.",
		Worker:  func(q *Rollback) *string { return &q.Worker },
		Guarded: true,
		Audit:   true,
		handle:  (*Server).Rollback,
	}
	DeploymentsAlias = Endpoint[Alias, Redeployed]{
		Name:    "deployments.alias",
		Doc:     "Names a version, or removes the name.",
		Worker:  func(q *Alias) *string { return &q.Worker },
		Guarded: true,
		Audit:   true,
		handle:  (*Server).SetAlias,
	}
	OwnersList = Endpoint[None, OwnerList]{
		Name:   "owners.list",
		Doc:    "Lists the owners that have a policy.",
		handle: (*Server).Owners,
	}
	OwnersFind = Endpoint[FindOwners, FoundOwners]{
		Name:    "owners.find",
		Doc:     "Lists the owners that have a worker or a policy.",
		Process: true,
		handle:  (*Server).findOwners,
	}
	OwnersGet = Endpoint[OwnerName, OwnerPolicy]{
		Name:   "owners.get",
		Doc:    "Returns the policy of an owner.",
		handle: (*Server).OwnerPolicy,
	}
	OwnersSet = Endpoint[SetOwner, OwnerPolicy]{
		Name:    "owners.set",
		Doc:     "Changes the policy of an owner.",
		Guarded: true,
		Audit:   true,
		handle:  (*Server).SetOwnerPolicy,
	}
	OwnersRemove = Endpoint[OwnerName, OwnerPolicy]{
		Name:    "owners.rm",
		Doc:     "Removes the policy of an owner.",
		Guarded: true,
		Audit:   true,
		handle:  (*Server).RemoveOwnerPolicy,
	}
	SecretsKeys = Endpoint[AskSecretKeys, SecretKeys]{
		Name:   "secrets.keys",
		Doc:    "Returns the public keys of a process, which are those of every owner.",
		Owner:  func(q *AskSecretKeys) *string { return &q.by },
		Each:   true,
		handle: by(secretsOf, (*sealedSecrets).keys),
	}
	SecretsList = Endpoint[ListSecrets, SecretList]{
		Name:   "secrets.list",
		Doc:    "Lists secrets, with what the process which answers says of them.",
		Owner:  func(q *ListSecrets) *string { return &q.Owner },
		handle: by(secretsOf, (*sealedSecrets).list),
	}
	SecretsSet = Endpoint[SetSecret, Secret]{
		Name:    "secrets.set",
		Doc:     "Stores a secret that is encrypted already.",
		Owner:   func(q *SetSecret) *string { return &q.Owner },
		Guarded: true,
		Audit:   true,
		handle:  by(secretsOf, (*sealedSecrets).set),
	}
	SecretsRemove = Endpoint[SecretName, Secret]{
		Name:    "secrets.rm",
		Doc:     "Removes a secret.",
		Owner:   func(q *SecretName) *string { return &q.Owner },
		Guarded: true,
		Audit:   true,
		handle:  by(secretsOf, (*sealedSecrets).remove),
	}
	SecretsRotate = Endpoint[Rotate, Rotated]{
		Name:    "secrets.rotate",
		Doc:     "Makes the named process encrypt all secrets again.",
		Each:    true,
		Guarded: true,
		Audit:   true,
		handle:  by(secretsOf, (*sealedSecrets).rotate),
	}
	DrainProcesses = Endpoint[Drain, Draining]{
		Name:    "drain",
		Doc:     "Makes the named processes drain and end.",
		Each:    true,
		Guarded: true,
		Audit:   true,
		handle:  (*Server).drain,
	}
	StartTail = Endpoint[Tail, Tailing]{
		Name:   "tail",
		Doc:    "Begins, renews or ends a tail of an owner in each process.",
		Owner:  func(q *Tail) *string { return &q.Owner },
		Worker: func(q *Tail) *string { return &q.Worker },
		Each:   true,
		handle: (*Server).tail,
	}
	SchedulesList = Endpoint[ListWorkers, ScheduleList]{
		Name:   "schedules.list",
		Doc:    "Lists the schedules of active versions.",
		Owner:  func(q *ListWorkers) *string { return &q.Owner },
		handle: (*Server).runningSchedules,
	}
	SchedulesNext = Endpoint[NextTicks, Ticks]{
		Name:   "schedules.next",
		Doc:    "Returns the next ticks of a schedule.",
		Worker: func(q *NextTicks) *string { return &q.Worker },
		handle: (*Server).NextTicks,
	}
	SchedulesWaiting = Endpoint[ListWaiting, WaitingList]{
		Name:    "schedules.waiting",
		Doc:     "Lists events that wait for their time.",
		Owner:   func(q *ListWaiting) *string { return &q.Owner },
		Worker:  func(q *ListWaiting) *string { return &q.Worker },
		Guarded: true,
		handle:  (*Server).WaitingEvents,
	}
	SchedulesCancel = Endpoint[CancelWaiting, Cancelled]{
		Name:    "schedules.cancel",
		Doc:     "Cancels the waiting events of an ID.",
		Worker:  func(q *CancelWaiting) *string { return &q.Worker },
		Guarded: true,
		Audit:   true,
		handle:  (*Server).CancelWaiting,
	}
	SchedulesPause = Endpoint[ScheduleName, Schedule]{
		Name:    "schedules.pause",
		Doc:     "Stops the ticks of a schedule until it is resumed.",
		Worker:  func(q *ScheduleName) *string { return &q.Worker },
		Guarded: true,
		Audit:   true,
		handle:  (*Server).PauseSchedule,
	}
	SchedulesResume = Endpoint[ScheduleName, Schedule]{
		Name:    "schedules.resume",
		Doc:     "Starts the ticks of a paused schedule again.",
		Worker:  func(q *ScheduleName) *string { return &q.Worker },
		Guarded: true,
		Audit:   true,
		handle:  (*Server).ResumeSchedule,
	}
)

// endpoints returns the table of all endpoints.
func endpoints() []row {
	return slices.Concat([]row{
		{name: "pool", doc: "Returns what the isolates of a process are and do.", each: true, handle: pool},
		GetFlow.row(),
		GetStats.row(),
		GetSettings.row(),
		GetStorage.row(),
		WorkersList.row(),
		WorkersFind.row(),
		FlowWorkers.row(),
		workersVersions.row(),
		WorkersActive.row(),
		WorkersRemove.row(),
		WorkersReset.row(),
		VersionsList.row(),
		VersionsShow.row(),
		VersionsSource.row(),
		VersionsPreview.row(),
		VersionsDeploy.row(),
		VersionsOutcomes.row(),
		FilesMissing.row(),
		FilesStore.row(),
		DeploymentsList.row(),
		DeploymentsPromote.row(),
		DeploymentsRollback.row(),
		DeploymentsAlias.row(),
		OwnersList.row(),
		OwnersFind.row(),
		OwnersGet.row(),
		OwnersSet.row(),
		OwnersRemove.row(),
		SecretsKeys.row(),
		SecretsList.row(),
		SecretsSet.row(),
		SecretsRemove.row(),
		SecretsRotate.row(),
		DrainProcesses.row(),
		StartTail.row(),
		SchedulesList.row(),
		SchedulesNext.row(),
		SchedulesWaiting.row(),
		SchedulesCancel.row(),
		SchedulesPause.row(),
		SchedulesResume.row(),
		SourcesList.row(),
		SourcesActive.row(),
		SourcesReset.row(),
	}, storedEndpoints(), queueEndpoints())
}
