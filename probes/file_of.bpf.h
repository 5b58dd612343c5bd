// Which file it is: from a descriptor or an inode to (device, inode, name), and the name's text, taken once.
//
// Regular files and block devices, and directories, which can be synced. A file that is removed and made again, as SQLite
// does with its journal, goes on under its name where the file system gives it the same inode; a file that is renamed
// begins anew. A block device is (its own number, 0, 0), whichever node it was opened by.

#define NAME_BYTES 64
#define GET(copy, member, type) (*(type *)((char *)(copy) + (member)))

enum { IS_NONE, IS_FILE, IS_DIRECTORY };

struct file_key_t { u64 inode; u32 device, name; };  // `name`: the hash that the kernel has of it and its directory

static __always_inline u64 read_u64(u64 address)
{
    u64 value = 0;
    bpf_probe_read_kernel(&value, sizeof(value), (void *)address);
    return value;
}

static __always_inline u32 read_u32(u64 address)
{
    u32 value = 0;
    bpf_probe_read_kernel(&value, sizeof(value), (void *)address);
    return value;
}

// Memory that the verifier knows the type of is read directly, ten times cheaper than through a helper.
#define LOAD(pointer, member, type) (*(type *)((u64)(pointer) + (member)))

// The struct file that a descriptor of the current process stands for; 0 when there is none.
static __always_inline u64 find_file(u32 descriptor)
{
    u64 files = LOAD(bpf_get_current_task_btf(), task_struct__files, u64);
    u64 table = files ? LOAD(files, files_struct__fdt, u64) : 0;
    if (!table || descriptor >= LOAD(table, fdtable__max_fds, u32))
        return 0;
    return read_u64(LOAD(table, fdtable__fd, u64) + descriptor * 8ULL);
}

// Tells which file an inode is, and returns what: IS_NONE for pipes, sockets and the like.
static __always_inline int identify(u64 inode, struct file_key_t *key)
{
    u64 head[inode__HEAD / 8];
    if (!inode || bpf_probe_read_kernel(head, sizeof(head), (void *)inode))
        return IS_NONE;
    u32 type = GET(head, inode__i_mode, u16) & 0170000;
    key->inode = key->name = 0;
    key->device = GET(head, inode__i_rdev, u32);
    if (type == 0060000)
        return IS_FILE;
    key->inode = GET(head, inode__i_ino, u64);
    key->device = read_u32(GET(head, inode__i_sb, u64) + super_block__s_dev);
#ifdef HAVE_dentry__d_alias
    u64 alias = read_u64(inode + inode__first);
    key->name = alias ? read_u32(alias - dentry__d_alias + dentry__hash) : 0;
#endif
    return type == 0100000 ? IS_FILE : type == 0040000 ? IS_DIRECTORY : IS_NONE;
}

static __always_inline void copy_name(u64 inode, char *name)
{
#ifdef HAVE_dentry__d_alias
    u64 alias = read_u64(inode + inode__first);
    if (alias)
        bpf_probe_read_kernel_str(name, NAME_BYTES, (void *)read_u64(alias - dentry__d_alias + dentry__name));
#endif
}

// One number for a file, well enough mixed to tell it from all others of the run.
static __always_inline u64 mix(struct file_key_t *key)
{
    return (key->inode ^ (u64)key->device << 32) * 0xFF51AFD7ED558CCDULL + key->name;
}
