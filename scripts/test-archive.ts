/** Packages for tests, in an archive that is the only one visible to apt. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';

export interface TestPackage {
  readonly name: string;
  /** Default: 1. */
  readonly version?: string;
  readonly depends?: string;
  /** Content by path. */
  readonly files: Readonly<Record<string, string | Buffer>>;
}

/** For the `skip` of tests. */
export const noApt = ['apt-get', 'dpkg-deb'].every((name) => existsSync(`/usr/bin/${name}`))
  ? false
  : 'apt is not installed';

/** Makes apt see only these packages until the end of the test. `directory` is used only for this. */
export function useArchive(t: TestContext, directory: string, packages: readonly TestPackage[]): void {
  const before = process.env.APT_CONFIG;
  t.after(() => {
    if (before === undefined) delete process.env.APT_CONFIG;
    else process.env.APT_CONFIG = before;
  });
  process.env.APT_CONFIG = makeArchive(directory, packages);
}

/** Returns apt's configuration. */
function makeArchive(directory: string, packages: readonly TestPackage[]): string {
  const archive = join(directory, 'archive');
  const index = packages.map(({ name, version = '1', depends, files }) => {
    const tree = join(directory, 'trees', name);
    const fields = [
      `Package: ${name}`,
      `Version: ${version}`,
      'Architecture: all',
      'Maintainer: nobody <n@example.org>',
    ];
    if (depends !== undefined) fields.push(`Depends: ${depends}`);
    const control = [...fields, 'Description: made by a test', ''].join('\n');
    for (const [path, content] of Object.entries({ ...files, 'DEBIAN/control': control })) {
      mkdirSync(dirname(join(tree, path)), { recursive: true });
      writeFileSync(join(tree, path), content, { mode: 0o755 });
    }
    mkdirSync(archive, { recursive: true });
    const deb = join(archive, `${name}.deb`);
    assert.equal(spawnSync('dpkg-deb', ['--root-owner-group', '-b', tree, deb]).status, 0);
    const bytes = readFileSync(deb);
    const hash = createHash('sha256').update(bytes).digest('hex');
    return `${control}Filename: ./${name}.deb\nSize: ${bytes.length}\nSHA256: ${hash}\n`;
  });
  writeFileSync(join(archive, 'Packages'), index.join('\n'));
  writeFileSync(join(directory, 'sources.list'), `deb [trusted=yes] file:${archive} ./\n`);
  writeFileSync(join(directory, 'status'), '');
  mkdirSync(join(directory, 'lists/partial'), { recursive: true });
  const settings = {
    'Dir::Etc::SourceList': join(directory, 'sources.list'),
    'Dir::Etc::SourceParts': '/dev/null',
    'Dir::State::Status': join(directory, 'status'),
    'Dir::State::Lists': join(directory, 'lists'),
    'Dir::Cache': join(directory, 'cache'),
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} "${value}";\n`);
  writeFileSync(join(directory, 'apt.conf'), lines.join(''));
  return join(directory, 'apt.conf');
}
