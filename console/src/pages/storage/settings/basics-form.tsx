/** Versioning and encryption of a bucket, each with a button, and facts about the bucket. */
import { Button, Group, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import type { Bucket } from '../../../../../sdk/index.ts';
import { sayBytes } from '../../../parts/say.ts';
import { Facts } from '../../../parts/tables/facts.tsx';
import { When } from '../../../parts/tables/when.tsx';
import { s3Text } from '../../../texts/s3-text.ts';
import { text } from '../../../texts/text.ts';
import { type BucketSwitch, SwitchQuestion, switchesOf } from '../buckets/bucket-switches.tsx';

const words = s3Text.settings.basics;

export function basicsSummary({ versioning, encryption }: Bucket): string {
  return [versioning ? words.versioned : words.unversioned, encryption ? words.encrypted : '']
    .filter((word) => word !== '')
    .join(' · ');
}

export function BasicsForm({ bucket }: { bucket: Bucket }) {
  const [asked, setAsked] = useState<BucketSwitch | null>(null);
  const { versions, encryption } = switchesOf(bucket);
  const { name, region, created_at: created, object_count: objects, version_count: all } = bucket;
  const { versioning: title, versioningLead, encryption: onDisk, encryptionLead } = text.storage;
  return (
    <Stack>
      {[
        { title, lead: versioningLead, isOn: bucket.versioning, turn: versions },
        { title: onDisk, lead: encryptionLead, isOn: bucket.encryption, turn: encryption },
      ].map((each) => (
        <Group key={each.title} justify="space-between" align="flex-start">
          <div>
            <Text fw={600}>{words.state(each.title, each.isOn)}</Text>
            <Text size="sm" c="dimmed">
              {each.lead}
            </Text>
          </div>
          <Button variant="default" onClick={() => setAsked(each.turn)}>
            {each.turn.action}
          </Button>
        </Group>
      ))}
      <Facts
        facts={[
          { name: words.region, value: region },
          { name: text.storage.created, value: <When at={created} /> },
          { name: text.storage.objects, value: words.count(objects, all) },
          { name: text.storage.size, value: text.storage.withVersions(sayBytes(bucket.total_size)) },
        ]}
      />
      <SwitchQuestion bucket={name} asked={asked} onClose={() => setAsked(null)} />
    </Stack>
  );
}
