export function greet(name: string): string {
  return name.trim() || "world";
}

export function unused(): never {
  throw new Error("a bundle has no use for this");
}
