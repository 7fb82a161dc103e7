/** Programs that the server starts are waited for longer on a busy host. */
import { type Finding, findAll, isTest, type SourceFile } from './source-files.ts';

const STARTS = /from 'node:child_process'|\bstartProgram\b/;
const LIMIT = /\btimeout: (?!patienceMs\()/g;

/**
 * A limit by the clock alone ends what only waits for the processor. For a look at the host at the start that
 * is for good: a wall that was not found stays open.
 */
export function checkPatience(files: readonly SourceFile[]): Finding[] {
  const message =
    'give it patienceMs(…) of platform/host/host-facts.ts, which grows with the load of the host';
  return files
    .filter(({ path, text }) => /^server\/(?!testing\/)/.test(path) && !isTest(path) && STARTS.test(text))
    .flatMap((file) => findAll(file, LIMIT, message));
}
