/** The tags of a machine as chips. */
import { Badge, Group } from '@mantine/core';
import { tagsOf } from './queries.ts';

export function Tags({ tags }: { tags: string }) {
  return (
    <Group gap={4}>
      {tagsOf(tags).map((tag) => (
        <Badge key={tag} variant="light" color="gray" tt="none">
          {tag}
        </Badge>
      ))}
    </Group>
  );
}
