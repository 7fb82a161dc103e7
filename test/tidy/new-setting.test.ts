/**
 * Adds the setting `description` to buckets in a copy of the repository, following CONTRIBUTING. Before its
 * entries are written, the type check must name each file that lacks one.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Edits, type Project, RepositoryCopy, ROOT } from './repository-copy.ts';

/** Number of files for a setting, including generated ones, its test, its guide and the changelog. */
const MOST_TOUCHED = 10;
const TYPE: Edits = {
  'server/storage/buckets/bucket-settings.ts': [
    ['  readonly tags?: ', '  readonly description?: string;\n  readonly tags?: '],
  ],
};
const ENTRIES: Edits = {
  'server/storage/buckets/setting-entries.ts': [
    [
      '  lifecycle: entry(',
      `  description: entry('description', {
    schema: Type.String({ maxLength: 200 }),
    stored: asItWas,
    shown: asItWas,
    restored: asItWas,
  }),
  lifecycle: entry(`,
    ],
  ],
  'server/s3/settings/setting-operations.ts': [['  cors: {\n', '  description: null,\n  cors: {\n']],
};
const FORM: Edits = {
  'console/src/pages/storage/settings/setting-forms.tsx': [
    [
      "  data_events: ['audit',",
      "  description: ['tags', DescriptionForm, (set) => set],\n  data_events: ['audit',",
    ],
    [
      "import { TagsForm } from './tags-form.tsx';",
      "import { DescriptionForm, TagsForm } from './tags-form.tsx';",
    ],
  ],
  'console/src/pages/storage/settings/tags-form.tsx': [
    [
      'function changeOf(',
      `export function DescriptionForm({ bucket, value }: SettingProps<'description'>) {
  const form = useSettingForm({
    bucket,
    values: { description: value ?? '' },
    changeOf: ({ description }) => ({ description: description === '' ? null : description }),
    saved: words.saved,
  });
  return (
    <SettingForm form={form}>
      <TextInput label={words.description} {...form.text('description')} />
    </SettingForm>
  );
}

function changeOf(`,
    ],
  ],
  'console/src/texts/en/storage/s3.ts': [['    twice: ', "    description: 'Description',\n    twice: "]],
};
const FILES = [TYPE, ENTRIES, FORM].flatMap(Object.keys);
/** Its test, its guide, the changelog. */
const WRITTEN = 3;

test('a setting of a bucket is an entry in each table, and the type check names the tables without', () => {
  const copy = new RepositoryCopy();
  const doors = (...projects: readonly Project[]) => {
    const errors = copy.typeErrors(...projects);
    return [...new Set(errors.map((error) => error.replace(/\(.*/s, '')))].sort();
  };
  copy.edit(TYPE);
  assert.deepEqual(doors('server'), Object.keys(ENTRIES).sort());
  copy.edit(ENTRIES);
  copy.generate();
  assert.deepEqual(doors('console'), ['console/src/pages/storage/settings/setting-forms.tsx']);
  copy.edit(FORM);
  assert.deepEqual(doors('server', 'cli', 'console'), []);
  const touched = copy.touched();
  assert.deepEqual(touched, [...FILES, 'openapi.json'].sort());
  assert.ok(touched.length + WRITTEN <= MOST_TOUCHED, `${touched.length} files`);
  const recipe = /\*\*A setting of a bucket\*\*[\s\S]*?(?=\n- \*\*)/.exec(
    readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8'),
  );
  for (const path of FILES)
    assert.ok(recipe?.[0].includes(path.replace(/.*\//, '')), `CONTRIBUTING: ${path}`);
});
