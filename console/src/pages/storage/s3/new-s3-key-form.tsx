/** A key for an S3 client: a set of rights for a purpose, then the secret and the configuration. */
import { Alert, Button, Code, Group, Select, Stack, Switch, Text, TextInput, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { CreatedAccessKey, NewAccessKey } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { useCloudForm } from '../../../parts/cloud-form.ts';
import { CallSample } from '../../../parts/commands/call-sample.tsx';
import { CopyIcon } from '../../../parts/commands/copy.tsx';
import { Choices } from '../../../parts/forms/choices.tsx';
import { Dialog, FormModal } from '../../../parts/forms/dialog.tsx';
import { s3Text } from '../../../texts/s3-text.ts';
import { text } from '../../../texts/text.ts';
import { KEY_TERMS } from '../../account/key-terms.ts';
import { accessKeysQuery } from '../../account/queries.ts';
import { NO_KEY } from '../../account/s3-clients.ts';
import { S3Snippets } from '../../account/s3-snippets.tsx';
import { bucketsQuery } from '../queries.ts';
import { KeyTest } from './key-test.tsx';

const words = s3Text;
const PRESETS = ['full', 'read', 'append', 'folder'] as const;

type Preset = (typeof PRESETS)[number];

const NOTHING = {
  name: '',
  preset: 'full' as Preset,
  /** Empty: all. */
  buckets: '',
  folder: '',
  onlyRead: false,
  versions: true,
  expires_in: '',
};

type Values = typeof NOTHING;

function scopesOf({ preset, onlyRead }: Values): NewAccessKey['scopes'] {
  if (preset === 'full') return ['storage:*'];
  if (preset === 'append') return ['storage:append', 'storage:read'];
  return preset === 'read' || onlyRead ? ['storage:read'] : ['storage:read', 'storage:write'];
}

function bodyOf(values: Values): NewAccessKey {
  const { name, preset, buckets: bucket, folder, expires_in } = values;
  const isLimited = preset !== 'full' && bucket !== '';
  return {
    name,
    scopes: scopesOf(values),
    ...(isLimited && { buckets: [folder === '' ? { name: bucket } : { name: bucket, prefix: folder }] }),
    ...(expires_in !== '' && { expires_in: Number(expires_in) }),
  };
}

export function NewS3KeyForm({ onClose }: { onClose: () => void }) {
  const { data: all = [] } = useQuery(bucketsQuery);
  const unversioned = ({ preset, buckets }: Values) =>
    preset === 'append' && all.some(({ name, versioning }) => name === buckets && !versioning);
  const form = useCloudForm({
    values: NOTHING,
    send: async (values) => {
      const key = await cloud.createAccessKey(bodyOf(values));
      if (values.versions && unversioned(values))
        await cloud.changeBucket(values.buckets, { versioning: true });
      return key;
    },
    invalidates: [accessKeysQuery, bucketsQuery],
  });
  const { values } = form;
  if (form.made !== undefined) {
    return (
      <Dialog opened onClose={onClose} title={words.made(values.name)} size="lg">
        <MadeKey made={form.made} onClose={onClose} />
      </Dialog>
    );
  }
  const isPlaced = values.preset !== 'full';
  const isIncomplete = values.preset === 'folder' && values.buckets === '';
  return (
    <FormModal
      isOpen
      title={text.storage.createS3Key}
      action={text.storage.createS3Key}
      form={form}
      isIncomplete={isIncomplete}
      size="lg"
      onClose={onClose}
    >
      <TextInput
        data-autofocus
        label={words.keyName}
        description={words.keyNameHint}
        required
        withAsterisk={false}
        {...form.text('name')}
      />
      <Choices
        label={words.preset}
        value={values.preset}
        columns={2}
        options={PRESETS.map((value) => {
          const { title, lead } = words.presets[value];
          return { value, title, notes: [lead] };
        })}
        onChange={(preset) => form.set({ preset: preset as Preset })}
      />
      {isPlaced && (
        <Select
          label={words.bucket}
          placeholder={values.preset === 'folder' ? words.chooseBucket : words.everyBucket}
          data={all.map(({ name }) => name)}
          clearable={values.preset !== 'folder'}
          searchable
          value={values.buckets === '' ? null : values.buckets}
          error={form.errorOf('buckets')}
          onChange={(bucket) => form.set({ buckets: bucket ?? '' })}
        />
      )}
      {isPlaced && values.buckets !== '' && (
        <TextInput
          label={words.folder}
          description={words.folderHint}
          spellCheck={false}
          autoCapitalize="none"
          {...form.text('folder')}
        />
      )}
      {values.preset === 'folder' && <Switch label={words.onlyRead} {...form.check('onlyRead')} />}
      {values.preset === 'append' && values.buckets === '' && <Text size="sm">{words.versionAll}</Text>}
      {unversioned(values) && (
        <Switch
          label={words.mustVersion(values.buckets)}
          description={words.mustVersionLead}
          {...form.check('versions')}
        />
      )}
      <Select label={words.expires} data={KEY_TERMS} allowDeselect={false} {...form.of('expires_in')} />
      <CallSample operation="createAccessKey" args={[bodyOf(values)]} />
    </FormModal>
  );
}

function MadeKey({ made, onClose }: { made: CreatedAccessKey; onClose: () => void }) {
  const [limit] = made.buckets ?? [];
  const shown = [
    [words.id, made.access_key_id],
    [words.secret, made.secret_access_key],
    [words.endpoint, made.s3_endpoint],
  ] as const;
  const setUp = {
    endpoint: made.s3_endpoint,
    id: made.access_key_id,
    secret: made.secret_access_key,
    bucket: limit?.name ?? NO_KEY.bucket,
    prefix: limit?.prefix ?? '',
  };
  return (
    <Stack>
      <Alert color="petrol">{words.shownOnce}</Alert>
      {shown.map(([label, value]) => (
        <div key={label}>
          {label}
          <Group gap="xs" wrap="nowrap">
            <Code style={{ overflowWrap: 'anywhere' }}>{value}</Code>
            <CopyIcon value={value} label={words.copy(label)} />
          </Group>
        </div>
      ))}
      <Title order={3}>{words.setUp}</Title>
      <S3Snippets setUp={setUp} />
      <Title order={3}>{words.test}</Title>
      <KeyTest id={made.id} buckets={made.buckets?.map(({ name }) => name) ?? null} />
      <Group justify="flex-end">
        <Button onClick={onClose}>{words.kept}</Button>
      </Group>
    </Stack>
  );
}
