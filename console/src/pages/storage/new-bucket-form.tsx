import { Button, Group, Stack, Switch, Text, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { cloud } from '../../cloud.ts';
import { CallSample } from '../../parts/call-sample.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { fieldError } from '../../parts/refusal.ts';
import { sayPrice } from '../../parts/say.ts';
import { Refused } from '../../parts/warning.tsx';
import { text } from '../../texts/text.ts';
import { pricesQuery } from '../billing/queries.ts';
import { bucketsQuery } from './queries.ts';

const NO_BUCKET = { name: '', versioning: true, encryption: false };

export function NewBucketForm({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const [bucket, setBucket] = useState(NO_BUCKET);
  const navigate = useNavigate();
  const create = useMutation({
    mutationFn: () => cloud.createBucket(bucket),
    meta: { shown: true, invalidates: [bucketsQuery] },
    onSuccess: async ({ name }) => {
      setBucket(NO_BUCKET);
      await navigate({ to: '/storage/$bucket', params: { bucket: name } });
    },
  });
  const nameError = fieldError(create.error, 'name');
  return (
    <Dialog opened={isOpen} onClose={onClose} title={text.storage.createBucket}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          create.mutate();
        }}
      >
        <Stack>
          <TextInput
            data-autofocus
            label={text.storage.name}
            description={text.storage.nameRule}
            value={bucket.name}
            error={nameError}
            required
            withAsterisk={false}
            spellCheck={false}
            onChange={({ currentTarget }) => setBucket({ ...bucket, name: currentTarget.value })}
          />
          <Switch
            label={text.storage.versioning}
            description={text.storage.versioningLead}
            checked={bucket.versioning}
            onChange={({ currentTarget }) => setBucket({ ...bucket, versioning: currentTarget.checked })}
          />
          <Switch
            label={text.storage.encryption}
            description={text.storage.encryptionLead}
            checked={bucket.encryption}
            onChange={({ currentTarget }) => setBucket({ ...bucket, encryption: currentTarget.checked })}
          />
          <Refused error={create.error} atFields={['name']} />
          <StoragePrice />
          <CallSample operation="createBucket" args={[bucket]} />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              {text.shell.cancel}
            </Button>
            <Button type="submit" loading={create.isPending}>
              {text.storage.createBucket}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
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
