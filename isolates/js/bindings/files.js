// bindings/files.js is the class of env.ASSETS: its fetch() is answered with the worker's own files. Go finds the files
// (isolates/bindings/files.go); the requests take the way of fetch().

"use strict";

const { ObjectFreeze, PromiseReject } = primordials;
const { Request, TOKEN, defineInterface, illegalConstructor, illegalInvocation, requestState, requireArguments } = internal;

const through = new internal.Through("files", "");

class Fetcher {
  #files = true;
  constructor(token = undefined) {
    if (token !== TOKEN) throw illegalConstructor();
  }
  fetch(input, init = undefined) {
    try {
      if (!(#files in this)) throw illegalInvocation("Fetcher");
      requireArguments(arguments.length, 1, "Fetcher.fetch");
      const request = new Request(input, init);
      return internal.checked(internal.fetch(request, through), requestState(request));
    } catch (error) {
      return PromiseReject(error);
    }
  }
}
defineInterface(Fetcher, "Fetcher", true);

internal.bindingKinds.files = () => ObjectFreeze(new Fetcher(TOKEN));
