/** What the page takes from the package, under the name it is imported by. The build keeps that import as it is. */

import type { LanguageModel, LoadOptions } from "../src/api";

export type * from "../src/api";
export type { Judgement, Kind, Round, RuleName } from "../src/types";
export { type ErrorCode, JourneeError } from "../src/errors";

export declare function load(url: string | URL, options?: LoadOptions): Promise<LanguageModel>;
