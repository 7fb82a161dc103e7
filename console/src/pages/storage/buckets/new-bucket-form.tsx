import { Switch, TextInput } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { cloud } from '../../../cloud.ts';
import { useCloudForm } from '../../../parts/cloud-form.ts';
import { CallSample } from '../../../parts/commands/call-sample.tsx';
import { FormModal } from '../../../parts/forms/dialog.tsx';
import { QuoteLine } from '../../../parts/quote-line.tsx';
import { text } from '../../../texts/text.ts';
import { bucketsQuery } from '../queries.ts';

const NO_BUCKET = { name: '', versioning: true, encryption: false };

export function NewBucketForm({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const navigate = useNavigate();
  const form = useCloudForm({
    values: NO_BUCKET,
    send: (bucket) => cloud.createBucket(bucket),
    invalidates: [bucketsQuery],
    onDone: async ({ name }) => {
      form.set(NO_BUCKET);
      await navigate({ to: '/storage/$bucket', params: { bucket: name } });
    },
  });
  return (
    <FormModal
      isOpen={isOpen}
      title={text.storage.createBucket}
      action={text.storage.createBucket}
      form={form}
      onClose={onClose}
    >
      <TextInput
        data-autofocus
        label={text.storage.name}
        description={text.storage.nameRule}
        required
        withAsterisk={false}
        spellCheck={false}
        {...form.text('name')}
      />
      <Switch
        label={text.storage.versioning}
        description={text.storage.versioningLead}
        {...form.check('versioning')}
      />
      <Switch
        label={text.storage.encryption}
        description={text.storage.encryptionLead}
        {...form.check('encryption')}
      />
      <QuoteLine of={{ resource_type: 'bucket' }} isBySize />
      <CallSample operation="createBucket" args={[form.values]} />
    </FormModal>
  );
}
