/** The server waits longer on a busy host for programs that it starts. */
import { type Finding, findAll, isTest, type SourceFile } from './source-files.ts';

const STARTS = /from 'node:child_process'|\bstartProgram\b/;
const LIMIT = /\btimeout: (?!patienceMs\()/g;

/**
 * A limit by the clock alone ends programs that only wait for the processor. For a check of the host at the
 * start this is permanent: an isolation that was not detected is never used.
 */
export function checkPatience(files: readonly SourceFile[]): Finding[] {
  const message =
    'give it patienceMs(…) of platform/host/host-facts.ts, which grows with the load of the host';
  return files
    .filter(({ path, text }) => /^server\/(?!testing\/)/.test(path) && !isTest(path) && STARTS.test(text))
    .flatMap((file) => findAll(file, LIMIT, message));
}
