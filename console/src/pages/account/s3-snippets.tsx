/** How S3 clients are set up with a new key: the endpoint, and lines to paste. */
import { SegmentedControl, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import type { CreatedAccessKey } from '../../../../sdk/index.ts';
import { CodeLine } from '../../parts/code.tsx';
import { text } from '../../texts/text.ts';

const words = text.account.s3;
const CLIENTS = ['aws', 'rclone', 'restic', 'boto3', 'js'] as const;

type Client = (typeof CLIENTS)[number];

function snippetOf(
  client: Client,
  { s3_endpoint: url, access_key_id: id, secret_access_key: secret }: CreatedAccessKey,
) {
  const environment = `export AWS_ACCESS_KEY_ID=${id}\nexport AWS_SECRET_ACCESS_KEY=${secret}`;
  const snippets: Readonly<Record<Client, string>> = {
    aws: `${environment}\naws --endpoint-url ${url} s3 ls`,
    rclone: `[cloudlet]\ntype = s3\nprovider = Other\nendpoint = ${url}\naccess_key_id = ${id}\nsecret_access_key = ${secret}`,
    restic: `${environment}\nrestic -r s3:${url}/BUCKET init`,
    boto3: `boto3.client('s3', endpoint_url='${url}',\n  aws_access_key_id='${id}', aws_secret_access_key='${secret}')`,
    js: `new S3Client({ endpoint: '${url}', region: 'us-east-1', forcePathStyle: true,\n  credentials: { accessKeyId: '${id}', secretAccessKey: '${secret}' } })`,
  };
  return snippets[client];
}

/** True for a key that may use buckets. */
export function isForStorage({ scopes }: Pick<CreatedAccessKey, 'scopes'>): boolean {
  return scopes.some((scope) => scope === '*' || scope.startsWith('storage:'));
}

export function S3Snippets({ made }: { made: CreatedAccessKey }) {
  const [client, setClient] = useState<Client>('aws');
  return (
    <Stack gap="xs">
      <Text size="sm">{words.lead}</Text>
      <SegmentedControl
        aria-label={words.client}
        value={client}
        data={CLIENTS.map((value) => ({ value, label: words.clients[value] }))}
        onChange={setClient}
      />
      <CodeLine value={snippetOf(client, made)} label={words.copy} />
    </Stack>
  );
}
