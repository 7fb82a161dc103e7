import { AnchorLink } from '../../parts/links.tsx';

interface Resource {
  readonly resource_type: string;
  readonly resource_id: string;
  readonly name: string;
}

/** The name of what was used, as a link to it. */
export function ResourceLink({ resource_type: type, resource_id: id, name }: Resource) {
  if (type === 'bucket') {
    return (
      <AnchorLink to="/storage/$bucket" params={{ bucket: name }}>
        {name}
      </AnchorLink>
    );
  }
  if (type === 'vm') {
    return (
      <AnchorLink to="/machines/$vm" params={{ vm: id }}>
        {name}
      </AnchorLink>
    );
  }
  return (
    <AnchorLink to="/databases/$database" params={{ database: id }}>
      {name}
    </AnchorLink>
  );
}
