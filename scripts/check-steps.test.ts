/** The files that `npm test` runs, and those that share a process. */
import assert from 'node:assert/strict';
import { dirname } from 'node:path';
import { test } from 'node:test';
import { readImports } from '../test/tidy/imports.ts';
import { repositoryFiles } from '../test/tidy/source-files.ts';
import { filesOf, jobsOf, STEPS } from './check-steps.ts';

const sources = new Map(repositoryFiles(dirname(import.meta.dirname)).map((source) => [source.path, source]));
/** Programs that start clouds, machines and operators' servers. */
const STARTERS = /^test\/harness\/(?:cloud-process|command)\.ts$|\/(?:test-guest|own-host-child)\.ts$/;

/** The import path from a file to one of them; undefined: none. */
function wayToStarter(from: string): string[] | undefined {
  const ways = [[from]];
  const seen = new Set([from]);
  for (const way of ways) {
    const source = sources.get(way.at(-1) ?? '');
    for (const { target } of source === undefined ? [] : readImports(source)) {
      if (target === undefined || seen.has(target)) continue;
      if (STARTERS.test(target)) return [...way, target];
      seen.add(target);
      ways.push([...way, target]);
    }
  }
  return undefined;
}

test('no file that shares a process with pure code starts a cloud, by any way', () => {
  const shared = STEPS.filter((step) => step.shared === 'code').flatMap((step) =>
    jobsOf(step, filesOf(step, [])).flatMap(({ files }) => (files.length > 1 ? files : [])),
  );
  assert.ok(shared.length > 300);
  const ways = shared.flatMap((file) => wayToStarter(file)?.join(' → ') ?? []);
  assert.deepEqual(ways, []);
});

test('each file is of one step', () => {
  const all = STEPS.flatMap((step) => filesOf(step, []));
  assert.deepEqual([...new Set(all)].sort(), all.sort());
});
