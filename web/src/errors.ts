/** Everything that can go wrong, by a code that a program can look at and a message that says what to do. */

export type ErrorCode =
  | "unsupported-browser"
  | "out-of-memory"
  | "network"
  | "hash-mismatch"
  | "bad-bundle"
  | "bad-request"
  | "runtime"
  | "disposed";

/** An error of this package. An abort is no such error: it throws the signal's own reason, as `fetch` does. */
export class JourneeError extends Error {
  override readonly name = "JourneeError";

  constructor(
    readonly code: ErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
