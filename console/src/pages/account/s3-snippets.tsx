/** Configuration of S3 clients to paste, with key and bucket filled in. */
import { Select, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { CodeLine } from '../../parts/commands/code.tsx';
import { s3Text } from '../../texts/s3-text.ts';
import { S3_CLIENTS, type S3Client, type S3SetUp, snippetOf } from './s3-clients.ts';

const CHOICES = S3_CLIENTS.map((value) => ({ value, label: s3Text.clients[value] }));

/** True for a key that may use buckets. */
export function isForStorage({ scopes }: { readonly scopes: readonly string[] }): boolean {
  return scopes.some((scope) => scope === '*' || scope.startsWith('storage:'));
}

export function S3Snippets({ setUp }: { setUp: S3SetUp }) {
  const [client, setClient] = useState<S3Client>('aws');
  const needsTls = client === 'pgbackrest' && setUp.endpoint.startsWith('http:');
  return (
    <Stack gap="xs">
      <Select
        label={s3Text.client}
        value={client}
        data={CHOICES}
        allowDeselect={false}
        maw={320}
        onChange={(value) => value !== null && setClient(value)}
      />
      {client === 's3fs' && setUp.prefix !== '' && <Text size="sm">{s3Text.needsBucket}</Text>}
      {needsTls && <Text size="sm">{s3Text.needsTls}</Text>}
      <CodeLine value={snippetOf(client, setUp)} label={s3Text.copySetUp} />
    </Stack>
  );
}
