/** Small artificial repositories for the tests of rules. */
import type { Finding, SourceFile } from './source-files.ts';

/** Path → text. */
export function sample(files: Readonly<Record<string, string>>): SourceFile[] {
  return Object.entries(files).map(([path, text]) => ({ path, text }));
}

/** `path:line` of each finding. */
export function locations(findings: readonly Finding[]): string[] {
  return findings.map(({ path, line }) => `${path}:${line}`);
}
