import {
  Alert,
  Button,
  Code,
  Group,
  MultiSelect,
  Select,
  Stack,
  TagsInput,
  Text,
  TextInput,
} from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { CreatedAccessKey, NewAccessKey } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';
import { useCloudForm } from '../../parts/cloud-form.ts';
import { CallSample } from '../../parts/commands/call-sample.tsx';
import { CopyIcon } from '../../parts/commands/copy.tsx';
import { Dialog, FormModal } from '../../parts/forms/dialog.tsx';
import { text } from '../../texts/text.ts';
import { bucketsQuery } from '../storage/queries.ts';
import { KEY_TERMS } from './key-terms.ts';
import { accessKeysQuery } from './queries.ts';
import { NO_KEY } from './s3-clients.ts';
import { isForStorage, S3Snippets } from './s3-snippets.tsx';

type Scope = NewAccessKey['scopes'][number];

const SCOPES: Scope[] = [
  ...(['storage:read', 'storage:append', 'storage:write', 'storage:admin'] as const),
  ...(['compute:read', 'compute:write', 'compute:connect'] as const),
  ...(['databases:read', 'databases:write', 'databases:connect', 'billing:read'] as const),
  ...(['webhooks:read', 'webhooks:write', 'account:read', 'account:write', '*'] as const),
];
/** `photos` is the whole bucket, `photos/2026/` a prefix in it. */
function limitOf(words: string) {
  const [name = '', ...prefix] = words.split('/');
  return prefix.length === 0 ? { name } : { name, prefix: prefix.join('/') };
}

const NOTHING = {
  name: '',
  scopes: ['storage:read'] as Scope[],
  buckets: [] as string[],
  expires_in: '',
};

const bodyOf = ({ name, scopes, buckets, expires_in }: typeof NOTHING): NewAccessKey => ({
  name,
  scopes,
  ...(buckets.length === 0 ? {} : { buckets: buckets.map(limitOf) }),
  ...(expires_in === '' ? {} : { expires_in: Number(expires_in) }),
});

export function NewAccessKeyForm({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const { data: all = [] } = useQuery(bucketsQuery);
  const form = useCloudForm({
    values: NOTHING,
    send: (values) => cloud.createAccessKey(bodyOf(values)),
    invalidates: [accessKeysQuery],
  });
  const close = () => {
    form.reset();
    onClose();
  };
  if (form.made !== undefined) {
    return (
      <Dialog opened={isOpen} onClose={close} title={text.account.createKey}>
        <MadeKey made={form.made} onClose={close} />
      </Dialog>
    );
  }
  return (
    <FormModal
      isOpen={isOpen}
      title={text.account.createKey}
      action={text.account.createKey}
      form={form}
      onClose={close}
    >
      <TextInput
        data-autofocus
        label={text.account.keyName}
        required
        withAsterisk={false}
        {...form.text('name')}
      />
      <MultiSelect
        label={text.account.scopes}
        description={text.account.scopesLead}
        data={SCOPES}
        {...form.of('scopes')}
      />
      <TagsInput
        label={text.account.buckets}
        description={text.account.bucketsLead}
        placeholder={form.values.buckets.length === 0 ? text.account.allBuckets : ''}
        data={all.map((bucket) => bucket.name)}
        {...form.of('buckets')}
      />
      <Select label={text.account.ends} data={KEY_TERMS} allowDeselect={false} {...form.of('expires_in')} />
      <CallSample operation="createAccessKey" args={[bodyOf(form.values)]} />
    </FormModal>
  );
}

function MadeKey({ made, onClose }: { made: CreatedAccessKey; onClose: () => void }) {
  const [limit] = made.buckets ?? [];
  const setUp = {
    endpoint: made.s3_endpoint,
    id: made.access_key_id,
    secret: made.secret_access_key,
    bucket: limit?.name ?? NO_KEY.bucket,
    prefix: limit?.prefix ?? '',
  };
  const secrets = [
    [text.account.apiKey, made.api_key],
    [text.account.s3Key, made.access_key_id],
    [text.account.s3Secret, made.secret_access_key],
    [text.account.s3.endpoint, made.s3_endpoint],
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
      {isForStorage(made) && (
        <>
          <Text size="sm">{text.account.s3.lead}</Text>
          <S3Snippets setUp={setUp} />
        </>
      )}
      <Group justify="flex-end">
        <Button onClick={onClose}>{text.account.kept}</Button>
      </Group>
    </Stack>
  );
}
