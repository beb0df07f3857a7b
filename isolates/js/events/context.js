// events/context.js is ctx, which handlers get besides their event. It keeps its run (events/handlers.js) in a private
// field.

"use strict";

const { TOKEN, defineInterface, illegalConstructor, illegalInvocation, requireArguments } = internal;

class ExecutionContext {
  #run;
  #props;
  constructor(token = undefined, run) {
    if (token !== TOKEN) throw illegalConstructor();
    this.#run = run;
  }
  waitUntil(promise) {
    if (!(#run in this)) throw illegalInvocation("ExecutionContext");
    requireArguments(arguments.length, 1, "waitUntil");
    internal.waitUntil(this.#run, promise);
  }
  passThroughOnException() {
    if (!(#run in this)) throw illegalInvocation("ExecutionContext");
  }
  get props() {
    if (!(#run in this)) throw illegalInvocation("ExecutionContext");
    return (this.#props ??= {});
  }
  get exports() {
    if (!(#run in this)) throw illegalInvocation("ExecutionContext");
    return internal.ownExports();
  }
}
defineInterface(ExecutionContext, "ExecutionContext", true);
internal.newContext = (run) => new ExecutionContext(TOKEN, run);
