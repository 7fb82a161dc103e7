/**
 * Bundles the packages that children of engines load by name when they first need them, into files beside the
 * build, in a folder like `node_modules`: some seventy files instead of nine hundred, which each cloud copies
 * into its data directory when it starts.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'rolldown';
import { STRICT } from './strict-bundle.ts';

const ROOT = join(import.meta.dirname, '..');
/** Libraries whose code runs in children. */
const LIBS = join(ROOT, 'libs');
/** `require('mingo/core')`, and `require(…)` of any part of a package. */
const REQUIRE = /\brequire\((?:'([^'.][^']*)'|`([^`.$]+)\/\$\{\w+\}`)\)/g;

/** Names as in the code, such as `mingo/core`. */
function requiredNames(): string[] {
  const files = globSync('**/*.ts', { cwd: LIBS }).filter((file) => !file.endsWith('.test.ts'));
  const names = files.flatMap((file) =>
    [...readFileSync(join(LIBS, file), 'utf8').matchAll(REQUIRE)].flatMap(([, name, all]) =>
      name === undefined ? partsOf(all ?? '') : [name],
    ),
  );
  return [...new Set(names)].sort();
}

function partsOf(name: string): string[] {
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'node_modules', name, 'package.json'), 'utf8'));
  return Object.keys(exports as object).map((part) => join(name, part));
}

/** Writes `mingo/core.js` and so on into `folder`. Parts of one package share what they have in common. */
export async function bundlePackages(folder: string): Promise<void> {
  await build({
    ...STRICT,
    input: Object.fromEntries(requiredNames().map((name) => [name, name])),
    cwd: ROOT,
    platform: 'neutral',
    // Modules can share parts; for Node these packages have CommonJS files, which cannot.
    resolve: { conditionNames: ['import'], mainFields: ['module', 'main'] },
    output: {
      dir: folder,
      format: 'cjs',
      entryFileNames: '[name].js',
      chunkFileNames: 'shared/[name]-[hash].js',
      minify: { compress: false, mangle: false, codegen: { removeWhitespace: true, asciiOnly: true } },
    },
  });
}
