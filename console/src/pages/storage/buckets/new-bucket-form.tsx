import { Switch, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { cloud } from '../../../cloud.ts';
import { useCloudForm } from '../../../parts/cloud-form.ts';
import { CallSample } from '../../../parts/commands/call-sample.tsx';
import { FormModal } from '../../../parts/forms/dialog.tsx';
import { sayPrice } from '../../../parts/say.ts';
import { text } from '../../../texts/text.ts';
import { pricesQuery } from '../../billing/queries.ts';
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
      <StoragePrice />
      <CallSample operation="createBucket" args={[form.values]} />
    </FormModal>
  );
}

/** The price of the contents; a bucket itself costs nothing. */
function StoragePrice() {
  const { data: prices = [] } = useQuery(pricesQuery);
  const price = prices.find(({ meter }) => meter === 'storage');
  if (price === undefined) return null;
  return (
    <Text size="sm" c="dimmed">
      {text.storage.price(sayPrice(price.price), Number(price.price) === 0 ? '' : price.unit)}
    </Text>
  );
}
