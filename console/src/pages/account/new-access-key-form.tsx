import { Alert, Button, Code, Group, MultiSelect, Select, Stack, TagsInput, TextInput } from '@mantine/core';
import { type UseMutationResult, useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { CreatedAccessKey, NewAccessKey } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { CallSample } from '../../parts/call-sample.tsx';
import { CopyIcon } from '../../parts/copy.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { fieldError } from '../../parts/refusal.ts';
import { Refused } from '../../parts/warning.tsx';
import { text } from '../../texts/text.ts';
import { bucketsQuery } from '../storage/queries.ts';
import { accessKeysQuery } from './queries.ts';

type Scope = NewAccessKey['scopes'][number];

const SCOPES: readonly Scope[] = [
  ...(['storage:read', 'storage:write', 'compute:read', 'compute:write'] as const),
  ...(['databases:read', 'databases:write', 'billing:read'] as const),
  ...(['webhooks:read', 'webhooks:write', 'account:read', 'account:write', '*'] as const),
];
const DAY = 86_400;
const TERMS = [
  { value: '', label: text.account.forEver },
  { value: String(30 * DAY), label: text.account.days(30) },
  { value: String(90 * DAY), label: text.account.days(90) },
  { value: String(365 * DAY), label: text.account.days(365) },
];
/** `photos` is the whole bucket, `photos/2026/` what begins so in it. */
function limitOf(words: string) {
  const [name = '', ...prefix] = words.split('/');
  return prefix.length === 0 ? { name } : { name, prefix: prefix.join('/') };
}

const bodyOf = ({ name, scopes, buckets, term }: typeof NOTHING): NewAccessKey => ({
  name,
  scopes,
  ...(buckets.length === 0 ? {} : { buckets: buckets.map(limitOf) }),
  ...(term === '' ? {} : { expires_in: Number(term) }),
});
const NOTHING = {
  name: '',
  scopes: ['storage:read'] as readonly Scope[],
  buckets: [] as readonly string[],
  term: '',
};

export function NewAccessKeyForm({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const [fields, setFields] = useState(NOTHING);
  const create = useMutation({
    mutationFn: () => cloud.createAccessKey(bodyOf(fields)),
    meta: { shown: true, invalidates: [accessKeysQuery] },
  });
  const close = () => {
    setFields(NOTHING);
    create.reset();
    onClose();
  };
  return (
    <Dialog opened={isOpen} onClose={close} title={text.account.createKey}>
      {create.data !== undefined ? (
        <MadeKey made={create.data} onClose={close} />
      ) : (
        <KeyForm fields={fields} setFields={setFields} create={create} onClose={close} />
      )}
    </Dialog>
  );
}

interface KeyFormProps {
  readonly fields: typeof NOTHING;
  readonly setFields: (fields: typeof NOTHING) => void;
  readonly create: UseMutationResult<CreatedAccessKey, Error, void>;
  readonly onClose: () => void;
}

function KeyForm({ fields, setFields, create, onClose }: KeyFormProps) {
  const { name, scopes, buckets, term } = fields;
  const { data: all = [] } = useQuery(bucketsQuery);
  const body = bodyOf(fields);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate();
      }}
    >
      <Stack>
        <TextInput
          data-autofocus
          label={text.account.keyName}
          required
          withAsterisk={false}
          value={name}
          error={fieldError(create.error, 'name')}
          onChange={({ currentTarget }) => setFields({ ...fields, name: currentTarget.value })}
        />
        <MultiSelect
          label={text.account.scopes}
          description={text.account.scopesLead}
          data={[...SCOPES]}
          value={[...scopes]}
          error={fieldError(create.error, 'scopes')}
          onChange={(value) => setFields({ ...fields, scopes: value as Scope[] })}
        />
        <TagsInput
          label={text.account.buckets}
          description={text.account.bucketsLead}
          placeholder={buckets.length === 0 ? text.account.allBuckets : ''}
          data={all.map((bucket) => bucket.name)}
          value={[...buckets]}
          error={fieldError(create.error, 'buckets')}
          onChange={(value) => setFields({ ...fields, buckets: value })}
        />
        <Select
          label={text.account.ends}
          data={TERMS}
          value={term}
          allowDeselect={false}
          onChange={(value) => setFields({ ...fields, term: value ?? '' })}
        />
        <Refused error={create.error} atFields={['name', 'scopes', 'buckets']} />
        <CallSample operation="createAccessKey" args={[body]} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {text.shell.cancel}
          </Button>
          <Button type="submit" loading={create.isPending}>
            {text.account.createKey}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function MadeKey({ made, onClose }: { made: CreatedAccessKey; onClose: () => void }) {
  const secrets = [
    [text.account.apiKey, made.api_key],
    [text.account.s3Key, made.access_key_id],
    [text.account.s3Secret, made.secret_access_key],
  ] as const;
  return (
    <Stack>
      <Alert color="petrol">{text.account.shownOnce}</Alert>
      {secrets.map(([label, value]) => (
        <div key={label}>
          {label}
          <Group gap="xs" wrap="nowrap">
            <Code style={{ overflowWrap: 'anywhere' }}>{value}</Code>
            <CopyIcon value={value} label={text.account.copy(label)} />
          </Group>
        </div>
      ))}
      <Group justify="flex-end">
        <Button onClick={onClose}>{text.account.kept}</Button>
      </Group>
    </Stack>
  );
}
