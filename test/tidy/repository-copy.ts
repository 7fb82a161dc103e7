/** A copy of the repository, on which changes are tried. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after } from 'node:test';
import { repositoryFiles } from './source-files.ts';

export const ROOT = join(import.meta.dirname, '../..');
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');

/** By path: each text, and its replacement. */
export type Edits = Readonly<Record<string, readonly (readonly [string, string])[]>>;

export type Project = 'server' | 'cli' | 'console';

export class RepositoryCopy {
  readonly path = mkdtempSync(join(tmpdir(), 'cloudlet-copy-'));

  /**
   * The build is not part of the copy, but has programs and the guest image, which would be downloaded again.
   */
  constructor() {
    after(() => rmSync(this.path, { recursive: true, force: true }));
    for (const { path, text } of repositoryFiles(ROOT)) {
      mkdirSync(dirname(join(this.path, path)), { recursive: true });
      writeFileSync(join(this.path, path), text);
    }
    symlinkSync(join(ROOT, 'node_modules'), join(this.path, 'node_modules'));
    mkdirSync(join(this.path, 'build'));
    for (const name of readdirSync(join(ROOT, 'build')).filter((name) => name !== 'sdk'))
      symlinkSync(join(ROOT, 'build', name), join(this.path, 'build', name));
  }

  edit(edits: Edits): void {
    for (const [path, changes] of Object.entries(edits)) {
      let text = readFileSync(join(this.path, path), 'utf8');
      for (const [from, to] of changes) {
        assert.ok(text.includes(from), `${path} has no ${from}`);
        text = text.replace(from, to);
      }
      writeFileSync(join(this.path, path), text);
    }
  }

  /** Runs Node; resolves to its output. */
  run(...words: readonly string[]): string {
    return execFileSync(process.execPath, words, { cwd: this.path, encoding: 'utf8' });
  }

  /** Regenerates `openapi.json` and the SDK. */
  generate(): void {
    this.run('scripts/write-openapi.ts');
    this.run('scripts/write-sdk.ts');
  }

  /** The errors of these projects, one per line; `server` has the files that its entry reaches. */
  typeErrors(...projects: readonly Project[]): string[] {
    const server = { extends: './tsconfig.json', include: ['server/main.ts'] };
    writeFileSync(join(this.path, 'tsconfig.server.json'), JSON.stringify(server));
    return projects.flatMap((name) => {
      const project = name === 'server' ? 'tsconfig.server.json' : name;
      try {
        this.run(TSC, '-p', project, '--noEmit', '--pretty', 'false');
        return [];
      } catch (error) {
        return String((error as { stdout?: string }).stdout).match(/^\S.*error TS.*$/gm) ?? [String(error)];
      }
    });
  }

  /** The changed files of the repository, sorted. */
  touched(): string[] {
    const files = repositoryFiles(ROOT);
    const isOther = ({ path, text }: (typeof files)[number]) =>
      readFileSync(join(this.path, path), 'utf8') !== text;
    return files
      .filter(isOther)
      .map(({ path }) => path)
      .sort();
  }
}
